"""The reference allocator, in torch: it does what the specification says, over real memory."""
