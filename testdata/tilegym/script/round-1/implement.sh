edit 's/^LATENCY = .*/LATENCY = 0.39/' src/tilegym/ops/cutile/rms_norm.py; echo '{"summary": "TMA"}'
