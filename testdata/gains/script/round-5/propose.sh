claim "unroll by four" "loop overhead shows" 1.25
