echo '{"title": "fewer registers", "bottleneck": "scheduling", "mechanism": "more blocks are resident", "expected_ratio": 1.1, "direction": "resource", "entry": "cutile-occupancy"}'
