//! Many small generators side by side, so that the compiler can step them with vector instructions.
//!
//! A cipher's block function turns seed and stream into the state of every lane: draws from one
//! stream reveal nothing about another. Within a stream each lane is a small
//! nonlinear generator of adds, shifts and rotations, which every machine has as vector
//! instructions.

/// Generators side by side.
const LANES: usize = 16;

/// Numbers that are made at a time; a multiple of two steps of all lanes.
pub(super) const BLOCK: usize = 64;

/// Rounds of the block function; twelve have a wide margin.
const DOUBLE_ROUNDS: usize = 6;

/// Which random numbers to generate.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamKey {
    /// The secret of a duel.
    pub(super) seed: u64,
    /// The call and the argument.
    pub(super) stream: u64,
    /// The part of a nested draw.
    pub(super) part: u32,
}

impl StreamKey {
    /// For the draw within this one.
    pub(super) fn inner(self) -> StreamKey {
        let part = self.part.wrapping_mul(4).wrapping_add(1);
        StreamKey { part, ..self }
    }

    /// For the coin tosses that choose which elements are replaced.
    pub(super) fn mask(self) -> StreamKey {
        let part = self.part.wrapping_mul(4).wrapping_add(2);
        StreamKey { part, ..self }
    }
}

type LaneWords = [u32; LANES];

/// The generators of one stream.
#[derive(Debug, Clone)]
pub(super) struct StreamLanes {
    a: LaneWords,
    b: LaneWords,
    c: LaneWords,
    steps: u32,
    left: LaneWords,
    n_left: usize,
}

impl StreamLanes {
    /// The generators in their initial state.
    pub(super) fn of(key: StreamKey) -> StreamLanes {
        let [a, b, c] = [0, 1, 2].map(|index| start_words(key, index));
        StreamLanes { a, b, c, steps: 1, left: [0; LANES], n_left: 0 }
    }

    /// The next word of every lane.
    #[inline(always)]
    fn step(&mut self) -> LaneWords {
        let mut words = [0; LANES];
        for (i, made) in words.iter_mut().enumerate() {
            let (a, b, c) = (self.a[i], self.b[i], self.c[i]);
            let word = a.wrapping_add(b).wrapping_add(self.steps);
            self.a[i] = b ^ (b >> 9);
            self.b[i] = c.wrapping_add(c << 3);
            self.c[i] = c.rotate_left(21).wrapping_add(word);
            *made = word;
        }
        self.steps = self.steps.wrapping_add(1);
        words
    }

    /// Bytes that look random.
    pub(super) fn bytes(&mut self, out: &mut [u8]) {
        // A copy can stay in registers.
        let mut lanes = self.clone();
        let (parts, rest) = out.as_chunks_mut::<{ 4 * LANES }>();
        for part in parts {
            for (four, word) in part.as_chunks_mut::<4>().0.iter_mut().zip(lanes.step()) {
                *four = word.to_ne_bytes();
            }
        }
        for (few, word) in rest.chunks_mut(4).zip(lanes.step()) {
            few.copy_from_slice(&word.to_ne_bytes()[..few.len()]);
        }
        *self = lanes;
    }

    /// Evenly from `low` to `high`, in 2^24 steps; `of` turns them into elements.
    #[inline(always)]
    pub(super) fn uniform_f32<T>(
        &mut self,
        (low, high): (f32, f32),
        out: &mut [T],
        of: impl Fn(f32) -> T,
    ) {
        let step = (high - low) * UNIT_F32;
        let scaled = |word: u32| {
            let drawn = low + (word >> 8) as i32 as f32 * step;
            of(if drawn < high { drawn } else { high })
        };
        // A copy can stay in registers.
        let mut lanes = self.clone();
        let (parts, rest) = out.as_chunks_mut::<LANES>();
        for part in parts {
            let words = lanes.step();
            for i in 0..LANES {
                part[i] = scaled(words[i]);
            }
        }
        if !rest.is_empty() {
            for (element, word) in rest.iter_mut().zip(lanes.step()) {
                *element = scaled(word);
            }
        }
        *self = lanes;
    }

    /// Evenly from [0, 1), in steps of 2^-53.
    pub(super) fn uniform_f64(&mut self, out: &mut [f64; BLOCK]) {
        for part in out.as_chunks_mut::<LANES>().0 {
            let (upper, lower) = (self.step(), self.step());
            for i in 0..LANES {
                let upper = f64::from((upper[i] >> 5) as i32);
                let lower = f64::from((lower[i] >> 6) as i32);
                part[i] = (upper * 67_108_864.0 + lower) * (0.5 / (1_u64 << 52) as f64);
            }
        }
    }

    /// From the normal distribution of mean 0 and deviation 1, to 6.5 deviations.
    pub(super) fn normal_f32(&mut self, out: &mut [f32; BLOCK]) {
        for pair in out.as_chunks_mut::<{ 2 * LANES }>().0 {
            let (far, round) = (self.step(), self.step());
            let (xs, ys) = pair.split_at_mut(LANES);
            for i in 0..LANES {
                (xs[i], ys[i]) = two_normals(far[i], round[i]);
            }
        }
    }

    /// The same with every bit of a float64 in use.
    pub(super) fn normal_f64(&mut self, out: &mut [f64; BLOCK]) {
        let mut coarse = [0.0; BLOCK];
        self.normal_f32(&mut coarse);
        self.uniform_f64(out);
        for (v, z) in out.iter_mut().zip(coarse) {
            *v = f64::from(z) * (1.0 + (*v - 0.5) * f64::from(f32::EPSILON));
        }
    }

    /// Integers from 0 to `most`, as the bits of an `i64`.
    pub(super) fn integers(&mut self, most: u64, out: &mut [i64; BLOCK]) {
        if most < u64::from(u32::MAX) {
            for part in out.as_chunks_mut::<LANES>().0 {
                for (v, word) in part.iter_mut().zip(self.step()) {
                    *v = ((u64::from(word) * (most + 1)) >> 32) as i64;
                }
            }
        } else {
            for v in out {
                *v = self.up_to(most) as i64;
            }
        }
    }

    /// The next 32 bits, one lane after the other.
    pub(super) fn word(&mut self) -> u32 {
        if self.n_left == 0 {
            self.left = self.step();
            self.n_left = LANES;
        }
        self.n_left -= 1;
        self.left[self.n_left]
    }

    fn up_to(&mut self, most: u64) -> u64 {
        let word = (u128::from(self.word()) << 32) | u128::from(self.word());
        ((word * (u128::from(most) + 1)) >> 64) as u64
    }

    /// An integer from 0 to `end - 1`; 0 if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.up_to(end.saturating_sub(1))
    }

    /// Evenly from [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        self.below(1 << 53) as f64 * (0.5 / (1_u64 << 52) as f64)
    }

    /// One number from the normal distribution.
    pub(super) fn normal(&mut self) -> f64 {
        f64::from(two_normals(self.word(), self.word()).0)
    }
}

/// The width of one of the 2^24 steps from 0 to 1.
const UNIT_F32: f32 = 1.0 / 16_777_216.0;

/// Two independent normal numbers: a point by its distance and its direction.
///
/// The direction is one of the first quadrant, mirrored by two bits of its own.
#[inline(always)]
fn two_normals(far: u32, round: u32) -> (f32, f32) {
    let share = ((far >> 1) as i32 as f32 + 1.0) * (0.5 / 1_073_741_824.0);
    let distance = (-2.0 * ln_unit(share)).sqrt();
    let angle = ((round << 2) >> 8) as i32 as f32 * (UNIT_F32 * std::f32::consts::FRAC_PI_2);
    let (sine, cosine) = quadrant(angle);
    let mirrored = |v: f32, bit: u32| f32::from_bits(v.to_bits() ^ (bit & 0x8000_0000));
    (mirrored(distance * cosine, round), mirrored(distance * sine, round << 1))
}

/// `ln(x)` for x in (0, 1], to about one part in ten million.
#[inline(always)]
fn ln_unit(x: f32) -> f32 {
    // x = 2^e * m with m from √½ to √2; ln m is twice the area tangent of (m - 1)/(m + 1).
    let shifted =
        (x.to_bits() as i32).wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32);
    let exponent = shifted >> 23;
    let m = f32::from_bits((x.to_bits() as i32 - (exponent << 23)) as u32);
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let series = 2.0 + q * (2.0 / 3.0 + q * (2.0 / 5.0 + q * (2.0 / 7.0 + q * (2.0 / 9.0))));
    exponent as f32 * std::f32::consts::LN_2 + s * series
}

/// Sine and cosine from 0 to a right angle, to about one part in ten million.
#[inline(always)]
fn quadrant(x: f32) -> (f32, f32) {
    const S: [f32; 5] =
        [-1.0 / 6.0, 1.0 / 120.0, -1.0 / 5_040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0];
    const C: [f32; 6] =
        [-0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0, -1.0 / 3_628_800.0, 1.0 / 479_001_600.0];
    let q = x * x;
    let sine = x + x * q * (S[0] + q * (S[1] + q * (S[2] + q * (S[3] + q * S[4]))));
    let cosine = 1.0 + q * (C[0] + q * (C[1] + q * (C[2] + q * (C[3] + q * (C[4] + q * C[5])))));
    (sine, cosine)
}

/// Sixteen words that no one can predict without the seed: a block of the ChaCha cipher.
fn start_words(key: StreamKey, index: u32) -> [u32; 16] {
    let halves = |v: u64| [v as u32, (v >> 32) as u32];
    let [seed_low, seed_high] = halves(key.seed);
    let [stream_low, stream_high] = halves(key.stream);
    // Four constants, a key of eight words, two of them secret, and the block number.
    let start = [
        0x6b61_7276,
        0x6520_6472,
        0x6177_7320,
        0x6c61_6e65,
        seed_low,
        seed_high,
        0x9e37_79b9,
        0x7f4a_7c15,
        0xf39c_c060,
        0x5ced_c834,
        0x1082_276b,
        0xf3a2_7251,
        index,
        key.part,
        stream_low,
        stream_high,
    ];
    let mut words = start;
    for _ in 0..DOUBLE_ROUNDS {
        for column in 0..4 {
            quarter(&mut words, [column, column + 4, column + 8, column + 12]);
        }
        for column in 0..4 {
            let next = |by: usize| (column + by) % 4;
            quarter(&mut words, [column, 4 + next(1), 8 + next(2), 12 + next(3)]);
        }
    }
    for (word, start) in words.iter_mut().zip(start) {
        *word = word.wrapping_add(start);
    }
    words
}

#[inline(always)]
fn quarter(words: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (to, from, turned, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        words[to] = words[to].wrapping_add(words[from]);
        words[turned] = (words[turned] ^ words[to]).rotate_left(by);
    }
}
