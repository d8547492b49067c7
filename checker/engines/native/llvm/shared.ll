; What a worker hands another: states, the sources they come from, room for their numbers, how many.
%Bucket = type { ptr, ptr, ptr, i64 }
; A worker's part of the visited set: table, shift from hash to line, bits of a number; then what is
; fresh: states, sources, slots, final numbers, how many.
%Part = type { ptr, i64, i64, ptr, ptr, ptr, ptr, i64 }

declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i16 @llvm.cttz.i16(i16, i1)

; Note the first place that decides a property.
define internal void @note(ptr %notes, i64 %claim, i1 %holds, i64 %number, i64 %step) cold noinline {
  br i1 %holds, label %done, label %decided
decided:
  %row = getelementptr [2 x i64], ptr %notes, i64 %claim
  %old = load i64, ptr %row, align 8
  %open = icmp slt i64 %old, 0
  br i1 %open, label %first, label %done
first:
  store i64 %number, ptr %row, align 8
  %by = getelementptr i64, ptr %row, i64 1
  store i64 %step, ptr %by, align 8
  br label %done
done:
  ret void
}

; The place of a state, by its number.
define internal ptr @state_at(ptr %directory, i64 %number) alwaysinline {
  %block = lshr i64 %number, $block_bits
  %entry = getelementptr ptr, ptr %directory, i64 %block
  %base = load ptr, ptr %entry, align 8
  %offset = and i64 %number, $block_mask
  %at = getelementptr $word, ptr %base, i64 %offset
  ret ptr %at
}

; Every bit of the result depends on every bit of the argument.
define internal i64 @mixed(i64 %a) alwaysinline {
  %b = lshr i64 %a, 32
  %c = xor i64 %a, %b
  %d = mul i64 %c, -2960836687051489765
  %e = lshr i64 %d, 29
  %f = xor i64 %d, %e
  %g = mul i64 %f, -4658895280553007687
  %h = lshr i64 %g, 32
  %i = xor i64 %g, %h
  ret i64 %i
}

; The low bits of a hash choose the worker, the high ones the line of its table, those between
; tell states of one line apart.
define internal i64 @owner(i64 %hash) alwaysinline {
  %owner = and i64 %hash, $owner_mask
  ret i64 %owner
}

define internal i32 @tag(i64 %hash, i32 %number_bits) alwaysinline {
  %a = lshr i64 %hash, 8
  %b = trunc i64 %a to i32
  %c = shl i32 %b, %number_bits
  ret i32 %c
}
