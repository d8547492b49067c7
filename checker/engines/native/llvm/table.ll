; Give the fresh states of the last chunk their final numbers.
define void @settle(ptr %part) {
  %table = load ptr, ptr %part, align 8
  %p2 = getelementptr %Part, ptr %part, i64 0, i32 2
  %number_bits.wide = load i64, ptr %p2, align 8
  %number_bits = trunc i64 %number_bits.wide to i32
  %tag_mask = shl i32 -1, %number_bits
  %p5 = getelementptr %Part, ptr %part, i64 0, i32 5
  %slots = load ptr, ptr %p5, align 8
  %p6 = getelementptr %Part, ptr %part, i64 0, i32 6
  %numbers = load ptr, ptr %p6, align 8
  %p7 = getelementptr %Part, ptr %part, i64 0, i32 7
  %count = load i64, ptr %p7, align 8
  %any = icmp ne i64 %count, 0
  br i1 %any, label %loop, label %done
loop:
  %k = phi i64 [ 0, %0 ], [ %k.next, %loop ]
  %slot.at = getelementptr i32, ptr %slots, i64 %k
  %slot = load i32, ptr %slot.at, align 4
  %slot.wide = zext i32 %slot to i64
  %number.at = getelementptr i32, ptr %numbers, i64 %k
  %number = load i32, ptr %number.at, align 4
  %entry.number = add i32 %number, 1
  %cell = getelementptr i32, ptr %table, i64 %slot.wide
  %entry = load i32, ptr %cell, align 4
  %tag = and i32 %entry, %tag_mask
  %entry.new = or i32 %tag, %entry.number
  store i32 %entry.new, ptr %cell, align 4
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Fill an empty table with the first %known states, as far as they are the worker's own.
define void @rebuild(ptr %part, ptr %directory, i64 %known, i64 %worker) {
  %hashes = alloca [$group x i64], align 16
  %numbers = alloca [$group x i64], align 16
  %table = load ptr, ptr %part, align 8
  %p1 = getelementptr %Part, ptr %part, i64 0, i32 1
  %line_shift = load i64, ptr %p1, align 8
  %p2 = getelementptr %Part, ptr %part, i64 0, i32 2
  %number_bits.wide = load i64, ptr %p2, align 8
  %number_bits = trunc i64 %number_bits.wide to i32
  %line_ones = lshr i64 -1, %line_shift
  br label %group
group:
  %g = phi i64 [ 0, %0 ], [ %i.next, %regroup ]
  br label %first
first:
  %i = phi i64 [ %g, %group ], [ %i.next, %first ]
  %n = phi i64 [ 0, %group ], [ %n.next, %first ]
  %i.at = call ptr @state_at(ptr %directory, i64 %i)
  %i.s = load $word, ptr %i.at, align 8
  %i.h = call i64 @hash($word %i.s)
  %i.keep = getelementptr i64, ptr %hashes, i64 %n
  store i64 %i.h, ptr %i.keep, align 8
  %i.number = getelementptr i64, ptr %numbers, i64 %n
  store i64 %i, ptr %i.number, align 8
  %i.line = lshr i64 %i.h, %line_shift
  %i.cells = getelementptr <16 x i32>, ptr %table, i64 %i.line
  call void @llvm.prefetch.p0(ptr %i.cells, i32 1, i32 3, i32 1)
  %i.owner = call i64 @owner(i64 %i.h)
  %i.mine = icmp eq i64 %i.owner, %worker
  %i.one = zext i1 %i.mine to i64
  %n.next = add i64 %n, %i.one
  %i.next = add i64 %i, 1
  %i.left = icmp ult i64 %i.next, %known
  %i.room = icmp ult i64 %n.next, $group
  %i.more = and i1 %i.left, %i.room
  br i1 %i.more, label %first, label %check
check:
  %any = icmp ne i64 %n.next, 0
  br i1 %any, label %second, label %regroup
second:
  %k = phi i64 [ 0, %check ], [ %k.next, %put ]
  %k.keep = getelementptr i64, ptr %hashes, i64 %k
  %h = load i64, ptr %k.keep, align 8
  %home = lshr i64 %h, %line_shift
  br label %probe
probe:
  %line = phi i64 [ %home, %second ], [ %line.next, %further ]
  %cells = getelementptr <16 x i32>, ptr %table, i64 %line
  %entries = load <16 x i32>, ptr %cells, align 64
  %free = icmp eq <16 x i32> %entries, zeroinitializer
  %place = call i64 @first_of(<16 x i1> %free)
  %full = icmp ugt i64 %place, 15
  br i1 %full, label %further, label %put
further:
  %line.up = add i64 %line, 1
  %line.next = and i64 %line.up, %line_ones
  br label %probe
put:
  %tag = call i32 @tag(i64 %h, i32 %number_bits)
  %k.number = getelementptr i64, ptr %numbers, i64 %k
  %number = load i64, ptr %k.number, align 8
  %number.short = trunc i64 %number to i32
  %entry.number = add i32 %number.short, 1
  %entry.new = or i32 %tag, %entry.number
  %cell = getelementptr i32, ptr %cells, i64 %place
  store i32 %entry.new, ptr %cell, align 4
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %n.next
  br i1 %k.more, label %second, label %regroup
regroup:
  br i1 %i.left, label %group, label %done
done:
  ret void
}
