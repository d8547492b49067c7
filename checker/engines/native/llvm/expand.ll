; Phase 1. Write down what is behind each of %count states, by the worker that owns it. A source is
; the state's place in the chunk, from %source on, and the step below it.
define void @expand(ptr %states, i64 %count, i64 %source, i64 %number, ptr %buckets,
                    ptr %firings, ptr %degrees, ptr %notes) {
  %behind = alloca [$steps x $word], align 16
  %took = alloca [$steps x i16], align 16
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %k.next, %last ]
  %from = getelementptr $word, ptr %states, i64 %k
  %s = load $word, ptr %from, align 8
  %now = add i64 %number, %k
  %n = call i64 @successors($word %s, ptr %behind, ptr %took, ptr %notes, i64 %now)
  %degree = getelementptr i32, ptr %degrees, i64 %k
  %n.short = trunc i64 %n to i32
  store i32 %n.short, ptr %degree, align 4
  %offset = add i64 %source, %k
  %origin = shl i64 %offset, $step_bits
  %some = icmp ne i64 %n, 0
  br i1 %some, label %sort, label %last
sort:                                             ; one successor a round
  %i = phi i64 [ 0, %loop ], [ %i.next, %sort ]
  %at = getelementptr $word, ptr %behind, i64 %i
  %t = load $word, ptr %at, align 8
  %by = getelementptr i16, ptr %took, i64 %i
  %step = load i16, ptr %by, align 2
  %step.wide = zext i16 %step to i64
  %fired = getelementptr i64, ptr %firings, i64 %step.wide
  %fired.old = load i64, ptr %fired, align 8
  %fired.new = add i64 %fired.old, 1
  store i64 %fired.new, ptr %fired, align 8
  %h = call i64 @hash($word %t)
  %owner = call i64 @owner(i64 %h)
  %bucket = getelementptr %Bucket, ptr %buckets, i64 %owner
  %held = getelementptr %Bucket, ptr %bucket, i64 0, i32 3
  %place = load i64, ptr %held, align 8
  %to = load ptr, ptr %bucket, align 8
  %to.state = getelementptr $word, ptr %to, i64 %place
  store $word %t, ptr %to.state, align 8
  %whence = getelementptr %Bucket, ptr %bucket, i64 0, i32 1
  %sources = load ptr, ptr %whence, align 8
  %to.source = getelementptr i32, ptr %sources, i64 %place
  %code = or i64 %origin, %step.wide
  %code.short = trunc i64 %code to i32
  store i32 %code.short, ptr %to.source, align 4
  %place.next = add i64 %place, 1
  store i64 %place.next, ptr %held, align 8
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %sort, label %last
last:
  %k.next = add i64 %k, 1
  %again = icmp ult i64 %k.next, %count
  br i1 %again, label %loop, label %done
done:
  ret void
}
