"""The theorems of arithmetic, by what they speak of."""
