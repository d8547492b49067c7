; Write the edges of one run, in the order of its states and their steps.
define void @connect(ptr %buckets, ptr %parts, ptr %heads, i64 %total, i64 %known,
                     ptr %targets, ptr %labels) {
  %any = icmp ne i64 %total, 0
  br i1 %any, label %begin, label %done
begin:
$bucket_runs
  br label %loop
loop:
  %e = phi i64 [ 0, %begin ], [ %e.next, %write ]
$least
  %bucket = getelementptr %Bucket, ptr %buckets, i64 %who
  %b2 = getelementptr %Bucket, ptr %bucket, i64 0, i32 2
  %found = load ptr, ptr %b2, align 8
  %target.at = getelementptr i32, ptr %found, i64 %position
  %target = load i32, ptr %target.at, align 4
  %target.wide = zext i32 %target to i64
  %old = icmp ult i64 %target.wide, %known
  br i1 %old, label %write, label %fresh
fresh:
  %index = sub i64 %target.wide, %known
  %part = getelementptr %Part, ptr %parts, i64 %who
  %p6 = getelementptr %Part, ptr %part, i64 0, i32 6
  %numbers = load ptr, ptr %p6, align 8
  %number.at = getelementptr i32, ptr %numbers, i64 %index
  %number = load i32, ptr %number.at, align 4
  br label %write
write:
  %final = phi i32 [ %target, %loop ], [ %number, %fresh ]
  %to.target = getelementptr i32, ptr %targets, i64 %e
  store i32 %final, ptr %to.target, align 4
  %step = trunc i32 %source to i16
  %step.only = and i16 %step, $step_mask
  %to.label = getelementptr i16, ptr %labels, i64 %e
  store i16 %step.only, ptr %to.label, align 2
  %e.next = add i64 %e, 1
  %more = icmp ult i64 %e.next, %total
  br i1 %more, label %loop, label %done
done:
  ret void
}
