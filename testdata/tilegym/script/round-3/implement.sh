edit 's/^LATENCY = .*/LATENCY = 0.375/' src/tilegym/ops/cutile/rms_norm.py; echo '{"summary": "hints"}'
