// The kernels of the stage: draws, poison, checksums and comparisons of tensors on the device.
//
// stage.ptx is made of this file by testing/stage.sh, with clang and without any SDK, so that every
// driver since CUDA 10 takes it. The structures are those of gpu.rs and of draw/elements.rs.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ u32 thread() { return __nvvm_read_ptx_sreg_tid_x(); }
static __device__ u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
static __device__ u64 first_index() {
  return (u64)__nvvm_read_ptx_sreg_ctaid_x() * threads() + thread();
}
static __device__ u64 stride() { return (u64)__nvvm_read_ptx_sreg_nctaid_x() * threads(); }
static __device__ u32 item() { return __nvvm_read_ptx_sreg_ctaid_y(); }

static __device__ double bits_f64(u64 bits) { return __builtin_bit_cast(double, bits); }
static __device__ u64 f64_bits(double v) { return __builtin_bit_cast(u64, v); }
static __device__ float bits_f32(u32 bits) { return __builtin_bit_cast(float, bits); }
static __device__ u32 f32_bits(float v) { return __builtin_bit_cast(u32, v); }
static __device__ double magnitude(double v) { return bits_f64(f64_bits(v) & ~(1ull << 63)); }
static __device__ bool is_nan(double v) { return v != v; }
static __device__ bool is_finite(double v) { return magnitude(v) <= 1.7976931348623157e308; }
static __device__ double larger(double a, double b) { return a > b ? a : b; }
static __device__ double smaller(double a, double b) { return a < b ? a : b; }
static __device__ double not_a_number() { return bits_f64(0x7ff8ull << 48); }

// 2^e for a normal number.
static __device__ double power_of_two(int e) { return bits_f64((u64)(e + 1023) << 52); }

// Elements, in the order of Dtype::ALL.
enum { F64, F32, F16, BF16, F8E4M3, F8E5M2, I64, I32, I16, I8, U64, U32, U16, U8, BOOL };

// Eight-bit floating-point numbers: bits of the fraction, least exponent of a normal number.
static __device__ double from_small(u32 bits, int fraction_bits, int exponent_min, bool has_inf) {
  u32 fraction = bits & ((1u << fraction_bits) - 1), exponent = (bits & 127) >> fraction_bits;
  double sign = bits & 128 ? -1.0 : 1.0;
  u32 top = 127u >> fraction_bits;
  if (has_inf && exponent == top)
    return fraction ? not_a_number() : sign * bits_f64(0x7ffull << 52);
  if (!has_inf && (bits & 127) == 127) return not_a_number();
  double unit = power_of_two(exponent_min - fraction_bits);
  if (exponent == 0) return sign * fraction * unit;
  return sign * ((1u << fraction_bits) + fraction) * unit * power_of_two(exponent - 1);
}

static __device__ u32 to_small(double v, int fraction_bits, int exponent_min, double largest,
                               bool has_inf) {
  u32 sign = (u32)(f64_bits(v) >> 63) << 7;
  double m = magnitude(v);
  if (is_nan(v)) return sign | 127;
  int exponent = (int)(f64_bits(m) >> 52) - 1023;
  if (exponent < exponent_min) exponent = exponent_min;
  double unit = power_of_two(exponent - fraction_bits);
  double steps = __nvvm_rcp_rn_d(unit) * m;
  // To nearest, ties to even.
  double rounded = (steps + 4503599627370496.0) - 4503599627370496.0;
  m = rounded * unit;
  if (m > largest) return sign | (has_inf ? 127u >> fraction_bits << fraction_bits : 126u);
  u32 whole = (u32)rounded;
  u32 hidden = 1u << fraction_bits;
  if (whole >= 2 * hidden) {
    whole >>= 1;
    exponent++;
  }
  if (whole < hidden) return sign | whole;
  return sign | (u32)(exponent - exponent_min + 1) << fraction_bits | (whole - hidden);
}

static __device__ double load(u32 dtype, const void *from, u64 i) {
  switch (dtype) {
  case F64: return ((const double *)from)[i];
  case F32: return ((const float *)from)[i];
  case F16: {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(((const u16 *)from)[i]));
    return v;
  }
  case BF16: return bits_f32((u32)((const u16 *)from)[i] << 16);
  case F8E4M3: return from_small(((const u8 *)from)[i], 3, -6, false);
  case F8E5M2: return from_small(((const u8 *)from)[i], 2, -14, true);
  case I64: return (double)((const i64 *)from)[i];
  case I32: return ((const int *)from)[i];
  case I16: return ((const short *)from)[i];
  case I8: return ((const signed char *)from)[i];
  case U64: return (double)((const u64 *)from)[i];
  case U32: return ((const u32 *)from)[i];
  case U16: return ((const u16 *)from)[i];
  case U8: return ((const u8 *)from)[i];
  default: return ((const u8 *)from)[i] != 0;
  }
}

static __device__ double within(double v, double low, double high) {
  return v >= low ? (v <= high ? v : high) : low;
}

static __device__ u16 to_bf16(double v) {
  if (is_nan(v)) return 0x7fc0;
  u32 bits = f32_bits((float)v);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static __device__ void store(u32 dtype, void *to, u64 i, double v) {
  switch (dtype) {
  case F64: ((double *)to)[i] = v; break;
  case F32: ((float *)to)[i] = (float)v; break;
  case F16: {
    u16 bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(v));
    ((u16 *)to)[i] = bits;
    break;
  }
  case BF16: ((u16 *)to)[i] = to_bf16(v); break;
  case F8E4M3: ((u8 *)to)[i] = to_small(v, 3, -6, 448.0, false); break;
  case F8E5M2: ((u8 *)to)[i] = to_small(v, 2, -14, 57344.0, true); break;
  case I64: ((i64 *)to)[i] = (i64)within(v, -9223372036854775808.0, 9223372036854774784.0); break;
  case I32: ((int *)to)[i] = (int)within(v, -2147483648.0, 2147483647.0); break;
  case I16: ((short *)to)[i] = (short)within(v, -32768.0, 32767.0); break;
  case I8: ((signed char *)to)[i] = (signed char)within(v, -128.0, 127.0); break;
  case U64: ((u64 *)to)[i] = (u64)within(v, 0.0, 18446744073709549568.0); break;
  case U32: ((u32 *)to)[i] = (u32)within(v, 0.0, 4294967295.0); break;
  case U16: ((u16 *)to)[i] = (u16)within(v, 0.0, 65535.0); break;
  case U8: ((u8 *)to)[i] = (u8)within(v, 0.0, 255.0); break;
  default: ((u8 *)to)[i] = v != 0.0; break;
  }
}

// Four words, as one access to memory.
struct __attribute__((aligned(16))) Words {
  u32 w[4];
};

// The bits of a float32 in a type of two or four bytes.
template <u32 DTYPE> static __device__ u32 bits_of(float v) {
  if (DTYPE == F16) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
    return bits;
  }
  u32 bits = f32_bits(v);
  if (DTYPE == BF16) return v != v ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return bits;
}

// Stores up to four elements from a multiple of four on.
template <u32 DTYPE>
static __device__ void store_four(u64 to, u64 i, u64 n, bool aligned, const float *v) {
  u32 bits[4];
  for (int k = 0; k < 4; k++) bits[k] = bits_of<DTYPE>(v[k]);
  if (DTYPE == F32) {
    u32 *at = (u32 *)to + i;
    if (aligned && i + 4 <= n)
      *(Words *)at = {{bits[0], bits[1], bits[2], bits[3]}};
    else
      for (u64 k = 0; k < 4 && i + k < n; k++) at[k] = bits[k];
    return;
  }
  u16 *at = (u16 *)to + i;
  if (aligned && i + 4 <= n)
    *(u64 *)at = (u64)(bits[3] << 16 | bits[2]) << 32 | bits[1] << 16 | bits[0];
  else
    for (u64 k = 0; k < 4 && i + k < n; k++) at[k] = (u16)bits[k];
}

// The number nearest to it that a type has.
static __device__ double rounded(u32 dtype, double v) {
  u64 place = 0;
  store(dtype, &place, 0, v);
  return load(dtype, &place, 0);
}

static __device__ u32 width_of(u32 dtype) {
  switch (dtype) {
  case F64: case I64: case U64: return 8;
  case F32: case I32: case U32: return 4;
  case F16: case BF16: case I16: case U16: return 2;
  default: return 1;
  }
}

static __device__ bool same_bits(u32 dtype, const void *a, const void *b, u64 i) {
  switch (width_of(dtype)) {
  case 8: return ((const u64 *)a)[i] == ((const u64 *)b)[i];
  case 4: return ((const u32 *)a)[i] == ((const u32 *)b)[i];
  case 2: return ((const u16 *)a)[i] == ((const u16 *)b)[i];
  default:
    if (dtype == BOOL) return !((const u8 *)a)[i] == !((const u8 *)b)[i];
    return ((const u8 *)a)[i] == ((const u8 *)b)[i];
  }
}

// Four random words: Philox with ten rounds. Without the key, nobody knows what comes next.

static __device__ Words random(u64 key, u64 index, u32 stream) {
  u32 a = (u32)index, b = (u32)(index >> 32), c = stream, d = 0x6b617276;
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u64 p = (u64)0xd2511f53u * a, q = (u64)0xcd9e8d57u * c;
    u32 na = (u32)(q >> 32) ^ b ^ k0, nc = (u32)(p >> 32) ^ d ^ k1;
    a = na, b = (u32)q, c = nc, d = (u32)p;
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return {{a, b, c, d}};
}

// From 0 up to 1, in steps of 2^-53 and of 2^-32.
static __device__ double unit_53(u32 high, u32 low) {
  return ((high >> 5) * 67108864.0 + (low >> 6)) * 1.1102230246251565e-16;
}
static __device__ double unit_32(u32 word) { return word * 2.3283064365386963e-10; }
static __device__ u64 below(u32 word, u64 end) { return (u64)word * end >> 32; }

// From the normal distribution, with all bits of a float64 in use.
static __device__ double normal(const Words &r) {
  float share = ((float)(r.w[0] >> 1) + 1.0f) * 4.6566129e-10f;
  float far = __nvvm_sqrt_rn_f(-1.3862944f * __nvvm_lg2_approx_f(share));
  float z = far * __nvvm_cos_approx_f((float)(r.w[1] >> 8) * 3.7450704e-7f);
  return z * (1.0 + (unit_32(r.w[2]) - 0.5) * 1.1920929e-7);
}

// The normal number below which this share of all is.
static __device__ double normal_at(double share) {
  double x = 2.0 * share - 1.0;
  float w = -0.6931472f * __nvvm_lg2_approx_f((float)larger((1.0 - x) * (1.0 + x), 1e-30));
  float p;
  if (w < 5.0f) {
    w -= 2.5f;
    p = 2.81022636e-08f;
    p = 3.43273939e-07f + p * w;
    p = -3.5233877e-06f + p * w;
    p = -4.39150654e-06f + p * w;
    p = 0.00021858087f + p * w;
    p = -0.00125372503f + p * w;
    p = -0.00417768164f + p * w;
    p = 0.246640727f + p * w;
    p = 1.50140941f + p * w;
  } else {
    w = __nvvm_sqrt_rn_f(w) - 3.0f;
    p = -0.000200214257f;
    p = 0.000100950558f + p * w;
    p = 0.00134934322f + p * w;
    p = -0.00367342844f + p * w;
    p = 0.00573950773f + p * w;
    p = -0.0076224613f + p * w;
    p = 0.00943887047f + p * w;
    p = 1.00167406f + p * w;
    p = 2.83297682f + p * w;
  }
  return 1.4142135623730951 * p * x;
}

// What elements are drawn from: ElementSource of draw/elements.rs.
enum { UNIFORM, NORMAL, INTEGERS, CONSTANT, DENORMALS, LARGE, MIXED, CANCELLING };

struct Source {
  u32 kind, replaced;
  double a, b, share;
};

// A tensor of a call: ElementDraw of draw/elements.rs, and where it is.
struct Drawn {
  u64 to, n, key;
  u32 dtype, pattern;
  u64 row;
  u32 is_signed, is_mask;
  Source base, hostile;
  u64 places[8];
  double factor;
};

enum {
  NONE, OUTLIERS, PREFIX, SCALED, LANE, TIES, CLUSTERS, CANCELLATION, REPEATED, SORTED, MASKS,
  ZEROS
};

// Streams of random words.
enum { OF_BASE, OF_HOSTILE, OF_ROW, OF_ELEMENT };

static __device__ double value_of(const Source &from, const Drawn &d, u64 i, u32 stream) {
  u64 at = from.kind == CANCELLING ? i / 2 : i;
  Words r = random(d.key, at, stream);
  if (from.replaced && unit_32(random(d.key, i, stream + 8).w[0]) < from.share)
    return from.replaced == 1 ? 0.0 : not_a_number();
  double u = unit_53(r.w[0], r.w[1]);
  double sign = d.is_signed && (r.w[2] & 1) ? -1.0 : 1.0;
  switch (from.kind) {
  case UNIFORM: return smaller(from.a + u * from.b, from.a + from.b);
  case NORMAL: return from.a + from.b * normal(r);
  case INTEGERS: return from.a + smaller((double)(u64)(u * (from.b + 1.0)), from.b);
  case DENORMALS: return sign * from.a * (1.0 + (double)(u64)(u * from.b));
  case LARGE: return sign * from.a * (0.5 + 0.5 * u);
  case MIXED: {
    double place = u * from.b, whole = (double)(int)place;
    return sign * (1.0 + (place - whole)) * power_of_two((int)from.a + (int)place);
  }
  case CANCELLING: {
    double v = sign * from.a * (0.5 + 0.5 * u);
    if (i % 2 == 0) return v;
    return (d.is_signed ? -v : v) * (1.0 + from.b * (4.0 * unit_32(r.w[3]) + 0.5));
  }
  default: return from.a;
  }
}

// The value that is larger than this share of all values.
static __device__ double value_at(const Source &from, double share) {
  switch (from.kind) {
  case UNIFORM: return from.a + share * from.b;
  case NORMAL: return from.a + from.b * normal_at(share);
  default: return from.a + smaller((double)(u64)(share * (from.b + 1.0)), from.b);
  }
}

// Which element of a row this one is a copy of, where rows have few values.
static __device__ u64 tied(const Drawn &d, u64 row, u64 column, u64 length) {
  u64 values = 1 + below(random(d.key, row, OF_ROW).w[0], d.places[0]);
  if (values > length) values = length;
  if (column < values) return column;
  return below(random(d.key, row * d.row + column, OF_ELEMENT).w[0], values);
}

static __device__ double element(const Drawn &d, u64 i) {
  u64 row = 0, column = i, length = d.n;
  if (d.pattern > LANE) {
    row = d.n >> 32 ? i / d.row : (u32)i / (u32)d.row, column = i - row * d.row;
    length = (row + 1) * d.row > d.n ? d.n - row * d.row : d.row;
  }
  switch (d.pattern) {
  case OUTLIERS:
    for (int k = 0; k < 8; k++)
      if (d.places[k] == i) return value_of(d.hostile, d, i, OF_HOSTILE);
    break;
  case PREFIX:
    if (i >= d.places[0]) return value_of(d.hostile, d, i, OF_HOSTILE);
    break;
  case LANE:
    if (i % d.places[1] == d.places[0]) return value_of(d.hostile, d, i, OF_HOSTILE);
    break;
  case SCALED: return value_of(d.base, d, i, OF_BASE) * d.factor;
  case TIES: return value_of(d.base, d, row * d.row + tied(d, row, column, length), OF_BASE);
  case CLUSTERS: {
    double v = value_of(d.base, d, row * d.row + tied(d, row, column, length), OF_BASE);
    v = rounded(d.dtype, v);
    // Toward zero, so that no element leaves its range.
    return v - v * d.factor * (double)(random(d.key, i, OF_ELEMENT).w[1] >> 28);
  }
  case CANCELLATION: {
    u64 half = length / 2;
    if (column < half || column >= 2 * half) break;
    double v = rounded(d.dtype, value_of(d.base, d, i - half, OF_BASE));
    return v * d.factor - v;
  }
  case REPEATED: {
    if (row < d.places[0]) break;
    u64 other = below(random(d.key, row, OF_ROW).w[0], d.places[0]);
    return value_of(d.base, d, other * d.row + column, OF_BASE);
  }
  case SORTED: {
    u64 rank = d.places[0] ? d.row - 1 - column : column;
    double part = unit_32(random(d.key, row, OF_ROW).w[0]);
    return value_at(d.base, (rank + part) / d.row);
  }
  case MASKS: {
    Words r = random(d.key, row, OF_ROW);
    if (length < 2 || (r.w[0] & 3) == 0) break;
    bool is_start = column < 1 + below(r.w[1], length - 1);
    if (is_start == ((r.w[2] & 1) == 0)) return 0.0;
    if (d.is_mask) return 1.0;
    break;
  }
  case ZEROS: {
    Words r = random(d.key, row, OF_ROW);
    u64 end = 1 + below(r.w[1], length / 4 + 1);
    u32 kind = r.w[0] & 3;
    if (kind == 0) return 0.0;
    if (kind == 1 && (column < end || column + end >= length)) return 0.0;
    if (kind == 2 && random(d.key, i, OF_ELEMENT).w[0] % 3 == 0) return 0.0;
    break;
  }
  }
  return value_of(d.base, d, i, OF_BASE);
}

// The usual draws of the usual types, in float32 and four at a time.
template <u32 DTYPE> static __device__ void nominal(const Drawn &d) {
  if (d.base.kind == CONSTANT && !d.base.replaced) {
    float all = (float)d.base.a, v[4] = {all, all, all, all};
    for (u64 four = first_index(); 4 * four < d.n; four += stride())
      store_four<DTYPE>(d.to, 4 * four, d.n, d.to % 16 == 0, v);
    return;
  }
  if ((d.base.kind != UNIFORM && d.base.kind != NORMAL) || d.base.replaced) {
    for (u64 i = first_index(); i < d.n; i += stride())
      store(DTYPE, (void *)d.to, i, value_of(d.base, d, i, OF_BASE));
    return;
  }
  float a = (float)d.base.a, b = (float)d.base.b;
  bool aligned = d.to % 16 == 0;
  for (u64 four = first_index(); 4 * four < d.n; four += stride()) {
    Words r = random(d.key, four, OF_BASE);
    float v[4];
    for (int k = 0; k < 4; k += 2) {
      if (d.base.kind == NORMAL) {
        float share = ((float)(r.w[k] >> 1) + 1.0f) * 4.6566129e-10f;
        float far = b * __nvvm_sqrt_approx_f(-1.3862944f * __nvvm_lg2_approx_f(share));
        float angle = (float)(r.w[k + 1] >> 8) * 3.7450704e-7f;
        v[k] = a + far * __nvvm_cos_approx_f(angle);
        v[k + 1] = a + far * __nvvm_sin_approx_f(angle);
      } else {
        for (int l = k; l < k + 2; l++) {
          float x = a + (float)(r.w[l] >> 8) * 5.9604645e-8f * b;
          v[l] = x < a + b ? x : a + b;
        }
      }
    }
    store_four<DTYPE>(d.to, 4 * four, d.n, aligned, v);
  }
}

// Draws tensors, one in each row of the grid.
extern "C" __global__ void draw(const Drawn *list) {
  const Drawn &d = list[item()];
  if (d.pattern == NONE) {
    switch (d.dtype) {
    case F32: return nominal<F32>(d);
    case F16: return nominal<F16>(d);
    case BF16: return nominal<BF16>(d);
    }
  }
  for (u64 i = first_index(); i < d.n; i += stride()) store(d.dtype, (void *)d.to, i, element(d, i));
}

struct Bytes {
  u64 at, n, key;
};

// Random bytes.
extern "C" __global__ void fill(const Bytes *list) {
  Bytes b = list[item()];
  u8 *to = (u8 *)b.at;
  bool aligned = b.at % 16 == 0;
  for (u64 i = first_index(); i < (b.n + 15) / 16; i += stride()) {
    Words r = random(b.key, i, OF_BASE);
    if (aligned && 16 * i + 16 <= b.n)
      *(Words *)(to + 16 * i) = r;
    else
      for (u64 k = 0; k < 16 && 16 * i + k < b.n; k++)
        to[16 * i + k] = (u8)(r.w[k / 4] >> k % 4 * 8);
  }
}

static __device__ u64 mixed(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static __device__ u64 summed(u64 key, u64 i, u64 word) {
  return mixed(word ^ mixed(key + i * 0x9e3779b97f4a7c15ull));
}

// A checksum of each part under its key, added to what is there.
extern "C" __global__ void checksum(const Bytes *list, u64 *sums) {
  Bytes b = list[item()];
  const u8 *from = (const u8 *)b.at;
  u64 sum = 0, done = 0;
  if (b.at % 16 == 0) {
    done = b.n / 16;
    for (u64 i = first_index(); i < done; i += stride()) {
      Words four = ((const Words *)from)[i];
      sum += summed(b.key, 2 * i, (u64)four.w[1] << 32 | four.w[0]);
      sum += summed(b.key, 2 * i + 1, (u64)four.w[3] << 32 | four.w[2]);
    }
  }
  for (u64 i = 2 * done + first_index(); i < (b.n + 7) / 8; i += stride()) {
    u64 word = 0;
    for (u64 k = 0; k < 8 && 8 * i + k < b.n; k++) word |= (u64)from[8 * i + k] << 8 * k;
    sum += summed(b.key, i, word);
  }
  for (int by = 16; by; by >>= 1) {
    u32 low = (u32)sum, high = (u32)(sum >> 32);
    low = __nvvm_shfl_sync_bfly_i32(0xffffffff, low, by, 31);
    high = __nvvm_shfl_sync_bfly_i32(0xffffffff, high, by, 31);
    sum += (u64)high << 32 | low;
  }
  if (thread() % 32 == 0)
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(sums + item()), "l"(sum) : "memory");
}

// Copies with a change of type; nudged by about one epsilon if that is above zero.
struct Converted {
  u64 from, to, n, key;
  u32 from_dtype, to_dtype;
  double nudge;
};

extern "C" __global__ void convert(const Converted *list) {
  Converted c = list[item()];
  for (u64 i = first_index(); i < c.n; i += stride()) {
    double v = load(c.from_dtype, (const void *)c.from, i);
    if (c.nudge > 0.0) {
      double by = random(c.key, i, OF_BASE).w[0] & 1 ? c.nudge : -c.nudge;
      v = rounded(c.from_dtype, v + v * by);
    }
    store(c.to_dtype, (void *)c.to, i, v);
  }
}

// Two tensors, and the limits of the type of the first one: FloatLimits of accuracy.rs.
struct Compared {
  u64 out, reference, n;
  u32 out_dtype, reference_dtype;
  double overflow, largest, normal, epsilon;
  u32 has_inf, exact;
  double inverse, out_mean, reference_mean;
  double limit, relative;
};

// Figures of a pass, for each block; the host adds them up in the same order every time.
enum { FIGURES = 12 };
enum { LARGEST, SUMS, ELEMENTS, SQUARES, CROSS };

// Which figures of a pass are the largest ones, and which the least.
static __device__ bool is_largest(u32 pass, int figure) {
  if (pass == LARGEST) return figure == 0;
  if (pass == SUMS) return figure == 1 || figure == 2;
  if (pass == ELEMENTS) return figure >= 2 && figure <= 4;
  return false;
}
static __device__ bool is_least(u32 pass, int figure) {
  return (pass == ELEMENTS && figure == 9) || (pass == CROSS && figure == 1);
}

// Puts the sums of all threads of a block together.
static __device__ void report(u32 pass, const double *sums, double *figures) {
  __shared__ double side[256];
  u64 at = (u64)item() * __nvvm_read_ptx_sreg_nctaid_x() + __nvvm_read_ptx_sreg_ctaid_x();
  for (int k = 0; k < FIGURES; k++) {
    side[thread()] = sums[k];
    for (u32 half = threads() / 2; half; half /= 2) {
      __syncthreads();
      if (thread() < half) {
        double a = side[thread()], b = side[thread() + half];
        side[thread()] =
            is_largest(pass, k) ? larger(a, b) : is_least(pass, k) ? smaller(a, b) : a + b;
      }
    }
    __syncthreads();
    if (thread() == 0) figures[at * FIGURES + k] = side[0];
    __syncthreads();
  }
}

static __device__ void clear(u32 pass, double *sums) {
  for (int k = 0; k < FIGURES; k++) sums[k] = is_least(pass, k) ? 9007199254740992.0 : 0.0;
}

// The passes of two outputs, for one type or for any; every timed call needs them.
enum { ANY = 99 };

// What a thread has seen of two outputs.
struct Crossed {
  double squares, differing, beyond, first, differences;
};

// Adds the pair of elements at an index.
static __device__ void cross_one(const Compared &c, u32 pass, u64 i, double o, double r, bool same,
                                 Crossed &seen) {
  if (pass == SQUARES) {
    if (is_finite(r)) seen.squares += r * r;
    if (!same) seen.differing += 1.0;
    return;
  }
  double apart = magnitude(o - r);
  bool good = c.exact ? same : apart <= c.limit + c.relative * magnitude(r) && is_finite(apart);
  if (good)
    seen.differences += apart * apart;
  else if (c.exact || (o != r && !(is_nan(o) && is_nan(r)))) {
    seen.beyond += 1.0;
    seen.first = smaller(seen.first, (double)i);
  }
}

// Sixteen bytes at once: single elements of two bytes use a fraction of the memory's speed.
template <u32 DTYPE>
static __device__ u64 cross_words(const Compared &c, u32 pass, Crossed &seen) {
  if (DTYPE != F32 && DTYPE != F16 && DTYPE != BF16) return 0;
  if (c.out % 16 != 0 || c.reference % 16 != 0) return 0;
  constexpr u32 EACH = DTYPE == F32 ? 4 : 8;
  u64 words = c.n / EACH;
  for (u64 at = first_index(); at < words; at += stride()) {
    Words out = ((const Words *)c.out)[at], reference = ((const Words *)c.reference)[at];
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
      u32 a = out.w[k * 4 / EACH], b = reference.w[k * 4 / EACH];
      if (EACH == 8) a = a >> k % 2 * 16 & 0xffff, b = b >> k % 2 * 16 & 0xffff;
      u64 place = at * EACH + k;
      cross_one(c, pass, place, load(DTYPE, &a, 0), load(DTYPE, &b, 0), a == b, seen);
    }
  }
  return words * EACH;
}

template <u32 DTYPE> static __device__ void cross(const Compared &c, u32 pass, double *sums) {
  u32 dtype = DTYPE == ANY ? c.out_dtype : DTYPE;
  const void *out = (const void *)c.out, *reference = (const void *)c.reference;
  Crossed seen = {0.0, 0.0, 0.0, sums[1], 0.0};
  u64 done = cross_words<DTYPE>(c, pass, seen);
  for (u64 i = done + first_index(); i < c.n; i += stride())
    cross_one(c, pass, i, load(dtype, out, i), load(dtype, reference, i),
              same_bits(dtype, out, reference, i), seen);
  if (pass == SQUARES)
    sums[0] = seen.squares, sums[1] = seen.differing;
  else
    sums[0] = seen.beyond, sums[1] = seen.first, sums[2] = seen.differences;
}

extern "C" __global__ void agree(const Compared *given, u32 pass, double *figures) {
  const Compared &c = given[item()];
  double sums[FIGURES];
  clear(pass, sums);
  switch (c.out_dtype) {
  case F64: cross<F64>(c, pass, sums); break;
  case F32: cross<F32>(c, pass, sums); break;
  case F16: cross<F16>(c, pass, sums); break;
  case BF16: cross<BF16>(c, pass, sums); break;
  default: cross<ANY>(c, pass, sums); break;
  }
  report(pass, sums, figures);
}

extern "C" __global__ void compare(const Compared *given, u32 pass, double *figures) {
  Compared c = given[item()];
  double sums[FIGURES];
  clear(pass, sums);
  for (u64 i = first_index(); i < c.n; i += stride()) {
    double o = load(c.out_dtype, (const void *)c.out, i);
    double r = load(c.reference_dtype, (const void *)c.reference, i);
    bool finite = is_finite(o) && magnitude(r) <= c.overflow && is_finite(r);
    switch (pass) {
    case LARGEST:
      if (finite) sums[0] = larger(sums[0], larger(magnitude(o), magnitude(r)));
      break;
    case SUMS:
      if (finite) {
        double a = o * c.inverse, b = r * c.inverse, apart = magnitude(a - b);
        sums[0] += 1.0;
        sums[1] = larger(sums[1], apart);
        sums[2] = larger(sums[2], magnitude(b));
        sums[3] += apart * apart;
        sums[4] += a;
        sums[5] += b;
        sums[6] += a * a;
        sums[7] += b * b;
        sums[8] += a * b;
      }
      break;
    case ELEMENTS: {
      if (finite) {
        double a = o * c.inverse - c.out_mean, b = r * c.inverse - c.reference_mean;
        sums[0] += a * a;
        sums[1] += b * b;
      }
      bool good = true;
      double wanted = r;
      if (!is_nan(r) && magnitude(r) > c.overflow) {
        double end = c.has_inf ? bits_f64(0x7ffull << 52) : c.largest;
        wanted = r < 0 ? -end : end;
      }
      if (is_nan(o) || is_nan(wanted)) {
        good = is_nan(o) && is_nan(wanted);
        if (!good) sums[is_nan(o) ? 6 : 5] += 1.0;
      } else if (o != wanted) {
        if (!is_finite(o) || !is_finite(wanted)) {
          good = false;
          sums[7] += 1.0;
        } else {
          double apart = smaller(magnitude(o - wanted), 1.7976931348623157e308);
          double near = within(magnitude(r), c.normal, c.largest);
          double ulp = larger(bits_f64(f64_bits(near) & 0x7ffull << 52) * c.epsilon, 4.9e-324);
          sums[2] = larger(sums[2], smaller(apart / ulp, 1.7976931348623157e308));
          sums[3] = larger(sums[3], apart - ulp / 2.0);
          double to = larger(magnitude(r), c.normal);
          sums[4] = larger(sums[4], smaller(apart / to, 1.7976931348623157e308));
          if (c.exact)
            good = o == rounded(c.out_dtype, r);
          else
            good = apart <= c.limit + c.relative * magnitude(r);
        }
      }
      if (!good) {
        sums[8] += 1.0;
        sums[9] = smaller(sums[9], (double)i);
      }
      break;
    }
    }
  }
  report(pass, sums, figures);
}
// Occupies every multiprocessor for a while, which takes longer if it is not alone.
extern "C" __global__ void canary(u64 cycles, u64 *out) {
  u64 start = __nvvm_read_ptx_sreg_clock64(), now = start;
  while (now - start < cycles) now = __nvvm_read_ptx_sreg_clock64();
  if (first_index() == 0) *out = now - start;
}
