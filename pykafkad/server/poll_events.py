"""The events that the reactor waits for, by epoll's numbers."""

READ = 0x1
WRITE = 0x4
ENDED = 0x8 | 0x10 | 0x2000
"""EPOLLERR, EPOLLHUP, EPOLLRDHUP."""
NEWS = READ | 0x2000 | 1 << 31
"""EPOLLIN, EPOLLRDHUP, EPOLLET. Bytes or an end that came since: a read that finds less than there is room for took
all, and the kernel need not look again."""
