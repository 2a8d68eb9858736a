cat <<'END'
{"round": 3, "primary_hypothesis": "Use 256x256 tiles for fewer loads", "bottleneck_class": "compute",
 "expected_benefit": "+20%", "risks": ["registers"], "verification_signal": "tensor_pct up",
 "planned_modified_files": ["primus_turbo/triton/gemm/gemm_fp8_kernel.py"], "rejected_alternatives": [], "evidence_paths": []}
END
