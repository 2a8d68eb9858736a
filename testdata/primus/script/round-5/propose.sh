cat <<'END'
{"new_directions": [
  {"title": "Specialize the layout for NT", "category": "memory", "hypothesis": "fewer transposes",
   "expected_signal": "bwd +5%", "risk": "low"},
  {"title": "Split K for skinny shapes", "category": "algorithm", "hypothesis": "more CUs busy",
   "expected_signal": "fwd +3%", "risk": "medium"},
  {"title": "Swizzle XCD order", "category": "tile", "hypothesis": "L2 hits", "expected_signal": "+2%",
   "risk": "low"}],
 "primary_pick": "Specialize the layout for NT"}
END
