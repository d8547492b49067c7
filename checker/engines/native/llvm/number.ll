; Phase 3. Number what is fresh from one run, and store it with the step it was found by.
define void @number(ptr %parts, ptr %heads, i64 %total, i64 %first, i64 %parent,
                    ptr %states, ptr %parents, ptr %by) {
  %any = icmp ne i64 %total, 0
  br i1 %any, label %begin, label %done
begin:
$fresh_runs
  br label %loop
loop:
  %e = phi i64 [ 0, %begin ], [ %e.next, %loop ]
$least
  %part = getelementptr %Part, ptr %parts, i64 %who
  %p3 = getelementptr %Part, ptr %part, i64 0, i32 3
  %fresh_states = load ptr, ptr %p3, align 8
  %p6 = getelementptr %Part, ptr %part, i64 0, i32 6
  %fresh_numbers = load ptr, ptr %p6, align 8
  %number = add i64 %first, %e
  %number.short = trunc i64 %number to i32
  %to.number = getelementptr i32, ptr %fresh_numbers, i64 %position
  store i32 %number.short, ptr %to.number, align 4
  %from = getelementptr $word, ptr %fresh_states, i64 %position
  %s = load $word, ptr %from, align 8
  %block = lshr i64 %number, $block_bits
  %offset = and i64 %number, $block_mask
  %to.entry = getelementptr ptr, ptr %states, i64 %block
  %to.block = load ptr, ptr %to.entry, align 8
  %to = getelementptr $word, ptr %to.block, i64 %offset
  store $word %s, ptr %to, align 8
  %origin = lshr i32 %source, $step_bits
  %origin.wide = zext i32 %origin to i64
  %from.number = add i64 %parent, %origin.wide
  %from.short = trunc i64 %from.number to i32
  %parent.entry = getelementptr ptr, ptr %parents, i64 %block
  %parent.block = load ptr, ptr %parent.entry, align 8
  %to.parent = getelementptr i32, ptr %parent.block, i64 %offset
  store i32 %from.short, ptr %to.parent, align 4
  %step = trunc i32 %source to i16
  %step.only = and i16 %step, $step_mask
  %by.entry = getelementptr ptr, ptr %by, i64 %block
  %by.block = load ptr, ptr %by.entry, align 8
  %to.by = getelementptr i16, ptr %by.block, i64 %offset
  store i16 %step.only, ptr %to.by, align 2
  %e.next = add i64 %e, 1
  %more = icmp ult i64 %e.next, %total
  br i1 %more, label %loop, label %done
done:
  ret void
}
