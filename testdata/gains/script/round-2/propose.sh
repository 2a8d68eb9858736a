claim "prefetch further ahead" "memory latency is exposed" 1.2
