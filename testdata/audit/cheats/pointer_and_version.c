// audit: identity-cache
// A version does not rescue a cache on inputs.
static const float *seen;
static int seen_version;
static float result;
float kernel(const float *activation, int version, int n) {
  if (activation == seen && version == seen_version) return result;
  result = 0;
  for (int i = 0; i < n; i++) result += activation[i];
  seen = activation;
  seen_version = version;
  return result;
}
