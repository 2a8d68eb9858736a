claim "prefetch further ahead" "memory latency is still exposed" 1.2
