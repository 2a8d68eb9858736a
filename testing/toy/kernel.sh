# The kernel of the toy: what it computes, and how long it claims to take.
result=$((2 * 3 + 1))
TIME=100
