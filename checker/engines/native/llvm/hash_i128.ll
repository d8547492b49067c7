define internal i64 @hash(i128 %s) alwaysinline {
  %low = trunc i128 %s to i64
  %up = lshr i128 %s, 64
  %high = trunc i128 %up to i64
  %a = mul i64 %high, -7046029254386353131
  %b = lshr i64 %a, 31
  %c = xor i64 %a, %b
  %d = add i64 %low, %c
  %h = call i64 @mixed(i64 %d)
  ret i64 %h
}
