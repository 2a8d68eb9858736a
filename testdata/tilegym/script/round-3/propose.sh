echo '{"title": "latency hints", "bottleneck": "memory", "mechanism": "deeper pipeline", "expected_ratio": 1.04, "direction": "pipeline", "entry": "latency-hints"}'
