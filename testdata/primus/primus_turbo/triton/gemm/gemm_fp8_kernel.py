# The kernel: what it computes, and how fast it claims to be.
RESULT=$((2 * 3 + 1))
FWD=285
BWD=140
