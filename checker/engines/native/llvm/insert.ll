; Which slots of a line may hold a state with this tag: all else in them is a number.
define internal <16 x i1> @alike(<16 x i32> %line, i32 %tag, i32 %number_mask) alwaysinline {
  %tags.one = insertelement <16 x i32> poison, i32 %tag, i64 0
  %tags = shufflevector <16 x i32> %tags.one, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask.one = insertelement <16 x i32> poison, i32 %number_mask, i64 0
  %mask = shufflevector <16 x i32> %mask.one, <16 x i32> poison, <16 x i32> zeroinitializer
  %differs = xor <16 x i32> %line, %tags
  %near = icmp ule <16 x i32> %differs, %mask
  %used = icmp ne <16 x i32> %line, zeroinitializer
  %alike = and <16 x i1> %near, %used
  ret <16 x i1> %alike
}

; The first place where a line has a one; 16 if it has none.
define internal i64 @first_of(<16 x i1> %ones) alwaysinline {
  %bits = bitcast <16 x i1> %ones to i16
  %first = call i16 @llvm.cttz.i16(i16 %bits, i1 false)
  %wide = zext i16 %first to i64
  ret i64 %wide
}

; Phase 2. Look up what is in a bucket and add what is new; return how many are fresh by now.
; Three rounds a group: ask for the lines; guess a state by its tag and ask for that; compare.
define i64 @insert(ptr %part, ptr %bucket, ptr %directory, i64 %known, i64 %edges) {
  %hashes = alloca [$group x i64], align 16
  %numbers = alloca [$group x i64], align 16
  %guesses = alloca [$group x ptr], align 16
  %table = load ptr, ptr %part, align 8
  %p1 = getelementptr %Part, ptr %part, i64 0, i32 1
  %line_shift = load i64, ptr %p1, align 8
  %p2 = getelementptr %Part, ptr %part, i64 0, i32 2
  %number_bits.wide = load i64, ptr %p2, align 8
  %number_bits = trunc i64 %number_bits.wide to i32
  %p3 = getelementptr %Part, ptr %part, i64 0, i32 3
  %fresh_states = load ptr, ptr %p3, align 8
  %p4 = getelementptr %Part, ptr %part, i64 0, i32 4
  %fresh_sources = load ptr, ptr %p4, align 8
  %p5 = getelementptr %Part, ptr %part, i64 0, i32 5
  %fresh_slots = load ptr, ptr %p5, align 8
  %p7 = getelementptr %Part, ptr %part, i64 0, i32 7
  %fresh.before = load i64, ptr %p7, align 8
  %states = load ptr, ptr %bucket, align 8
  %b1 = getelementptr %Bucket, ptr %bucket, i64 0, i32 1
  %sources = load ptr, ptr %b1, align 8
  %b2 = getelementptr %Bucket, ptr %bucket, i64 0, i32 2
  %targets = load ptr, ptr %b2, align 8
  %b3 = getelementptr %Bucket, ptr %bucket, i64 0, i32 3
  %count = load i64, ptr %b3, align 8
  %number_one = shl i32 1, %number_bits
  %number_mask = sub i32 %number_one, 1
  %line_ones = lshr i64 -1, %line_shift
  %newest = sub i64 %known, 1
  %keep = icmp ne i64 %edges, 0
  %any = icmp ne i64 %count, 0
  br i1 %any, label %group, label %done

group:
  %g = phi i64 [ 0, %0 ], [ %g.next, %regroup ]
  %fresh.group = phi i64 [ %fresh.before, %0 ], [ %fresh.next, %regroup ]
  %left = sub i64 %count, %g
  %m = call i64 @llvm.umin.i64(i64 %left, i64 $group)
  %group.states = getelementptr $word, ptr %states, i64 %g
  br label %first
first:                                            ; hash, and prefetch the line
  %i = phi i64 [ 0, %group ], [ %i.next, %first ]
  %i.at = getelementptr $word, ptr %group.states, i64 %i
  %i.s = load $word, ptr %i.at, align 8
  %i.h = call i64 @hash($word %i.s)
  %i.keep = getelementptr i64, ptr %hashes, i64 %i
  store i64 %i.h, ptr %i.keep, align 8
  %i.line = lshr i64 %i.h, %line_shift
  %i.cell = getelementptr <16 x i32>, ptr %table, i64 %i.line
  call void @llvm.prefetch.p0(ptr %i.cell, i32 0, i32 3, i32 1)
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %m
  br i1 %i.more, label %first, label %second

second:                                           ; guess, and prefetch the state
  %j = phi i64 [ 0, %first ], [ %j.next, %second ]
  %j.keep = getelementptr i64, ptr %hashes, i64 %j
  %j.h = load i64, ptr %j.keep, align 8
  %j.line = lshr i64 %j.h, %line_shift
  %j.cells = getelementptr <16 x i32>, ptr %table, i64 %j.line
  %j.entries = load <16 x i32>, ptr %j.cells, align 64
  %j.tag = call i32 @tag(i64 %j.h, i32 %number_bits)
  %j.alike = call <16 x i1> @alike(<16 x i32> %j.entries, i32 %j.tag, i32 %number_mask)
  %j.first = call i64 @first_of(<16 x i1> %j.alike)
  %j.place = and i64 %j.first, 15
  %j.cell = getelementptr i32, ptr %j.cells, i64 %j.place
  %j.entry = load i32, ptr %j.cell, align 4
  %j.bits = and i32 %j.entry, %number_mask
  %j.wide = zext i32 %j.bits to i64
  %j.less = sub i64 %j.wide, 1
  %j.none = icmp eq i64 %j.wide, 0
  %j.number = select i1 %j.none, i64 %newest, i64 %j.less
  %j.old = icmp ult i64 %j.number, %known
  %j.bound = select i1 %j.old, i64 %j.number, i64 %newest
  %j.stored = call ptr @state_at(ptr %directory, i64 %j.bound)
  %j.index = sub i64 %j.number, %known
  %j.pending = getelementptr $word, ptr %fresh_states, i64 %j.index
  %j.guess = select i1 %j.old, ptr %j.stored, ptr %j.pending
  call void @llvm.prefetch.p0(ptr %j.guess, i32 0, i32 3, i32 1)
  %j.number.at = getelementptr i64, ptr %numbers, i64 %j
  store i64 %j.number, ptr %j.number.at, align 8
  %j.guess.at = getelementptr ptr, ptr %guesses, i64 %j
  store ptr %j.guess, ptr %j.guess.at, align 8
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %m
  br i1 %j.more, label %second, label %third

third:                                            ; most guesses are right
  %k = phi i64 [ 0, %second ], [ %k.next, %on ]
  %fresh = phi i64 [ %fresh.group, %second ], [ %fresh.next, %on ]
  %k.index = add i64 %g, %k
  %k.at = getelementptr $word, ptr %states, i64 %k.index
  %s = load $word, ptr %k.at, align 8
  %k.number.at = getelementptr i64, ptr %numbers, i64 %k
  %guessed = load i64, ptr %k.number.at, align 8
  %k.guess.at = getelementptr ptr, ptr %guesses, i64 %k
  %guess = load ptr, ptr %k.guess.at, align 8
  %guess.state = load $word, ptr %guess, align 8
  %right = icmp eq $word %guess.state, %s
  br i1 %right, label %found, label %search, !prof !0

search:                                           ; the line as it is now, then those behind it
  %k.keep = getelementptr i64, ptr %hashes, i64 %k
  %h = load i64, ptr %k.keep, align 8
  %tag = call i32 @tag(i64 %h, i32 %number_bits)
  %home = lshr i64 %h, %line_shift
  br label %probe
probe:
  %line = phi i64 [ %home, %search ], [ %line.next, %further ]
  %cells = getelementptr <16 x i32>, ptr %table, i64 %line
  %entries = load <16 x i32>, ptr %cells, align 64
  %alike = call <16 x i1> @alike(<16 x i32> %entries, i32 %tag, i32 %number_mask)
  %alike.bits = bitcast <16 x i1> %alike to i16
  br label %candidates
candidates:
  %open = phi i16 [ %alike.bits, %probe ], [ %open.next, %look ]
  %some = icmp ne i16 %open, 0
  br i1 %some, label %candidate, label %room
candidate:
  %c.first = call i16 @llvm.cttz.i16(i16 %open, i1 true)
  %c.place = zext i16 %c.first to i64
  %c.cell = getelementptr i32, ptr %cells, i64 %c.place
  %c.entry = load i32, ptr %c.cell, align 4
  %c.short = and i32 %c.entry, %number_mask
  %c.wide = zext i32 %c.short to i64
  %number = sub i64 %c.wide, 1
  %old = icmp ult i64 %number, %known
  br i1 %old, label %settled, label %pending
settled:
  %at.old = call ptr @state_at(ptr %directory, i64 %number)
  br label %look
pending:
  %pending.index = sub i64 %number, %known
  %at.pending = getelementptr $word, ptr %fresh_states, i64 %pending.index
  br label %look
look:
  %at = phi ptr [ %at.old, %settled ], [ %at.pending, %pending ]
  %there = load $word, ptr %at, align 8
  %same = icmp eq $word %there, %s
  %open.less = sub i16 %open, 1
  %open.next = and i16 %open, %open.less
  br i1 %same, label %found, label %candidates
room:
  %free = icmp eq <16 x i32> %entries, zeroinitializer
  %place = call i64 @first_of(<16 x i1> %free)
  %full = icmp ugt i64 %place, 15
  br i1 %full, label %further, label %new
further:
  %line.up = add i64 %line, 1
  %line.next = and i64 %line.up, %line_ones
  br label %probe
new:                                              ; set it aside, under a number of this table
  %new.number = add i64 %known, %fresh
  %to.state = getelementptr $word, ptr %fresh_states, i64 %fresh
  store $word %s, ptr %to.state, align 8
  %from.source = getelementptr i32, ptr %sources, i64 %k.index
  %source = load i32, ptr %from.source, align 4
  %to.source = getelementptr i32, ptr %fresh_sources, i64 %fresh
  store i32 %source, ptr %to.source, align 4
  %line.base = shl i64 %line, 4
  %slot = or i64 %line.base, %place
  %slot.short = trunc i64 %slot to i32
  %to.slot = getelementptr i32, ptr %fresh_slots, i64 %fresh
  store i32 %slot.short, ptr %to.slot, align 4
  %fresh.up = add i64 %fresh, 1
  %entry.number = add i64 %new.number, 1
  %entry.short = trunc i64 %entry.number to i32
  %entry.new = or i32 %tag, %entry.short
  %cell = getelementptr i32, ptr %cells, i64 %place
  store i32 %entry.new, ptr %cell, align 4
  br label %found
found:
  %fresh.next = phi i64 [ %fresh, %third ], [ %fresh, %look ], [ %fresh.up, %new ]
  %target = phi i64 [ %guessed, %third ], [ %number, %look ], [ %new.number, %new ]
  br i1 %keep, label %edge, label %on
edge:
  %to.target = getelementptr i32, ptr %targets, i64 %k.index
  %target.short = trunc i64 %target to i32
  store i32 %target.short, ptr %to.target, align 4
  br label %on
on:
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %m
  br i1 %k.more, label %third, label %regroup
regroup:
  %g.next = add i64 %g, $group
  %g.more = icmp ult i64 %g.next, %count
  br i1 %g.more, label %group, label %done

done:
  %fresh.end = phi i64 [ %fresh.before, %0 ], [ %fresh.next, %regroup ]
  store i64 %fresh.end, ptr %p7, align 8
  %end.source = getelementptr i32, ptr %fresh_sources, i64 %fresh.end
  store i32 -1, ptr %end.source, align 4
  ret i64 %fresh.end
}

!0 = !{!"branch_weights", i32 9, i32 1}
