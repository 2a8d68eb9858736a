//! Draws for a device, which makes all elements of a tensor at once: each element is a function of
//! its index and of a few numbers. Same distributions and patterns as on the host, other bits.

use super::hostile::magnitudes;
use super::lanes::{StreamKey, StreamLanes};
use super::patterns::{
    CHOICE_PART, InputPattern, LANE_WIDTHS, OUTLIERS_MAX, PatternTarget, ROWS_MAX, VALUES_MAX,
    scale_factor,
};
use super::{Draw, DrawSegment, Poison};
use crate::tensor::{Dtype, power_of_two};

/// The part of a stream that is reserved for the key of a device.
const KEY_PART: u32 = 17;

/// Beyond this, float64 does not have every integer.
const INTEGER_MAX: f64 = (1_u64 << 53) as f64;

/// What elements are drawn from, as the kernels of the device read it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ElementSource {
    /// The distribution, from `UNIFORM` to `CANCELLING` there.
    kind: u32,
    /// What a share of the elements is replaced by: 0 nothing, 1 zero, 2 NaN.
    replaced: u32,
    a: f64,
    b: f64,
    share: f64,
}

/// How the elements of one tensor of one call are drawn, as the kernels of the device read it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementDraw {
    key: u64,
    /// The position in [`Dtype::ALL`].
    dtype: u32,
    /// 0, or one more than the position in [`InputPattern::ALL`].
    pattern: u32,
    row: u64,
    is_signed: u32,
    is_mask: u32,
    base: ElementSource,
    hostile: ElementSource,
    places: [u64; OUTLIERS_MAX as usize],
    factor: f64,
}

/// The position of a type in the list that the kernels of the device know.
pub fn dtype_number(dtype: Dtype) -> u32 {
    Dtype::ALL.iter().position(|one| *one == dtype).unwrap_or_default() as u32
}

/// One tensor of one call, to be drawn by a device.
#[derive(Clone, Copy, Debug)]
pub struct ElementRequest<'a> {
    /// What it is drawn from.
    pub draw: &'a Draw,
    /// Its pattern, if it has one.
    pub pattern: Option<PatternTarget<'a>>,
    /// The type of its elements.
    pub dtype: Dtype,
    /// The secret of the call.
    pub seed: u64,
    /// The argument.
    pub stream: u64,
    /// Its elements.
    pub count: u64,
}

/// Elements that a device draws at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementLayer {
    /// The first element.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// How they are drawn.
    pub draw: ElementDraw,
}

impl ElementLayer {
    /// How a device draws a tensor, each layer over those before it; nothing if only the host can.
    pub fn all(request: &ElementRequest<'_>) -> Option<Vec<Self>> {
        let Draw::Pieces { of, pieces } = request.draw else {
            let draw = ElementDraw::of(request)?;
            return Some(vec![Self { from: 0, count: request.count, draw }]);
        };
        if request.pattern.is_some() {
            return None;
        }
        let layer = |piece: &DrawSegment| {
            let from = piece.from.min(request.count);
            let count = piece.to.clamp(from, request.count) - from;
            let draw =
                ElementDraw::of(&ElementRequest { draw: of, seed: piece.seed, count, ..*request })?;
            Some(Self { from, count, draw })
        };
        pieces.iter().map(layer).collect()
    }
}

impl ElementDraw {
    /// How a device draws a tensor; nothing if an element depends on others, as in a permutation.
    pub fn of(request: &ElementRequest<'_>) -> Option<Self> {
        let ElementRequest { draw, pattern, dtype, seed, stream, count } = *request;
        let mut lanes = StreamLanes::of(StreamKey { seed, stream, part: KEY_PART });
        let key = u64::from(lanes.word()) << 32 | u64::from(lanes.word());
        let made = Self {
            key,
            dtype: dtype_number(dtype),
            pattern: 0,
            row: count.max(1),
            is_signed: u32::from(magnitudes(dtype).signed),
            is_mask: u32::from(*draw == Draw::Integers { low: 0, high: 1 } || dtype == Dtype::Bool),
            base: source_of(draw, dtype)?,
            hostile: ElementSource::default(),
            places: [u64::MAX; OUTLIERS_MAX as usize],
            factor: 1.0,
        };
        match pattern.filter(|_| count > 0) {
            None => Some(made),
            Some(target) => {
                let part = CHOICE_PART;
                let mut lanes = StreamLanes::of(StreamKey { seed, stream, part });
                made.with_pattern(&target, count, &mut lanes)
            }
        }
    }

    /// How a device poisons an output with elements; nothing if these are bytes without a type.
    pub fn of_poison(poison: Poison<'_>, seed: u64, dtype: Dtype, count: u64) -> Option<Self> {
        let nan = Draw::Constant { value: f64::NAN };
        let draw = match poison {
            Poison::Nan if dtype.is_float() => &nan,
            Poison::Plausible { of } => of,
            Poison::Nan | Poison::Pattern => return None,
        };
        Self::of(&ElementRequest { draw, pattern: None, dtype, seed, stream: 0, count })
    }

    fn with_pattern(
        mut self,
        target: &PatternTarget<'_>,
        count: u64,
        lanes: &mut StreamLanes,
    ) -> Option<Self> {
        let dtype = target.dtype;
        let position = InputPattern::ALL.iter().position(|one| *one == target.pattern)?;
        self.pattern = position as u32 + 1;
        self.row = (target.row as u64).clamp(1, count);
        if target.pattern.needs_hostile() {
            self.hostile = source_of(target.hostile?, dtype)?;
        }
        match target.pattern {
            InputPattern::Outliers => {
                let n = 1 + lanes.below(OUTLIERS_MAX) as usize;
                self.places.iter_mut().take(n).for_each(|place| *place = lanes.below(count));
            }
            InputPattern::Prefix => {
                self.places[0] = count / 4 + lanes.below(count - count / 4);
            }
            InputPattern::Lane => {
                let width = LANE_WIDTHS[lanes.below(LANE_WIDTHS.len() as u64) as usize] as u64;
                self.places[1] = width.min(count);
                self.places[0] = lanes.below(self.places[1]);
            }
            InputPattern::Scaled => self.factor = scale_factor(target.hostile?, dtype, lanes)?,
            InputPattern::Ties => self.places[0] = VALUES_MAX,
            InputPattern::Clusters => {
                (self.places[0], self.factor) = (VALUES_MAX, dtype.epsilon());
            }
            InputPattern::Cancellation => {
                let bits = (-dtype.epsilon().log2()) as u64;
                self.factor = power_of_two(-((bits / 4 + lanes.below(bits / 2 + 1)) as i32));
            }
            InputPattern::Repeated => {
                // A tensor of one row repeats a part of it.
                self.row = if self.row == count { count.div_ceil(4) } else { self.row };
                self.places[0] = 1 + lanes.below(ROWS_MAX);
            }
            InputPattern::Sorted => self.places[0] = lanes.below(2),
            InputPattern::Masks | InputPattern::Zeros => {}
            InputPattern::NonFinite | InputPattern::Extreme => {}
            InputPattern::Ends | InputPattern::Alike => {}
        }
        Some(self)
    }
}

fn source_of(draw: &Draw, dtype: Dtype) -> Option<ElementSource> {
    let of = magnitudes(dtype);
    let plain =
        |kind: u32, a: f64, b: f64| Some(ElementSource { kind, a, b, ..ElementSource::default() });
    let replacing = |replaced: u32, share: f64, of: &Draw| {
        let inner = source_of(of, dtype)?;
        (inner.replaced == 0).then_some(ElementSource { replaced, share, ..inner })
    };
    match draw {
        Draw::Uniform { low, high } => plain(0, *low, high - low),
        Draw::Normal { mean, sd } => plain(1, *mean, *sd),
        Draw::Integers { low, high } => {
            let (low, high) = (*low as f64, *high as f64);
            let is_exact = low.abs() <= INTEGER_MAX && high.abs() <= INTEGER_MAX;
            is_exact.then(|| plain(2, low, high - low)).flatten()
        }
        Draw::Constant { value } => plain(3, *value, 0.0),
        Draw::Zeros => plain(3, 0.0, 0.0),
        Draw::Denormals => plain(4, of.smallest, of.n_subnormal),
        Draw::Large { full } => plain(5, if *full { of.largest } else { of.root }, 0.0),
        Draw::Mixed => {
            let top = of.root.log2().floor();
            plain(6, f64::from(of.exponent_min), top - f64::from(of.exponent_min))
        }
        Draw::Cancelling => {
            let scale = match dtype.is_float() {
                true => of.root.min(1.0).max(of.smallest),
                false => of.largest / 2.0,
            };
            plain(7, scale, of.epsilon)
        }
        Draw::Sparse { density, of } => replacing(1, 1.0 - density, of),
        Draw::Nans { share, of } if dtype.is_float() => replacing(2, *share, of),
        Draw::Nans { of, .. } => source_of(of, dtype),
        Draw::Permutation | Draw::Groups { .. } | Draw::Sorted { .. } | Draw::Pieces { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(draw: &Draw, pattern: Option<PatternTarget<'_>>, seed: u64) -> Option<ElementDraw> {
        let dtype = Dtype::F16;
        let (stream, count) = (1, 4_096);
        ElementDraw::of(&ElementRequest { draw, pattern, dtype, seed, stream, count })
    }

    #[test]
    fn every_pattern_has_its_numbers_and_they_differ_from_call_to_call() {
        let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
        let hostile = Draw::Large { full: false };
        for pattern in InputPattern::ALL {
            let dtype = Dtype::F16;
            let target = PatternTarget { pattern, hostile: Some(&hostile), dtype, row: 64 };
            let made = |seed| of(&normal, Some(target), seed).expect("a draw by element");
            let one = made(1);
            assert_eq!(InputPattern::ALL[one.pattern as usize - 1], pattern);
            assert_eq!(one.hostile.kind, if pattern.needs_hostile() { 5 } else { 0 });
            assert_eq!(one, made(1));
            assert!((2..50).all(|seed| made(seed).key != one.key));
            let places = |seed| (made(seed).places, made(seed).factor.to_bits());
            let varies = (2..50).any(|seed| places(seed) != places(1));
            let fixed = [
                InputPattern::Ties,
                InputPattern::Clusters,
                InputPattern::Masks,
                InputPattern::Zeros,
            ];
            assert_eq!(varies, !fixed.contains(&pattern), "{pattern:?}");
        }
    }

    #[test]
    fn what_depends_on_other_elements_is_left_to_the_host() {
        let uniform = Draw::Uniform { low: 0.0, high: 2.0 };
        let sorted = Draw::Sorted { of: Box::new(uniform.clone()) };
        let far = Draw::Integers { low: 0, high: i64::MAX };
        for draw in [Draw::Permutation, sorted.clone(), far] {
            assert_eq!(of(&draw, None, 1), None, "{draw:?}");
        }
        let sparse = |of: Draw| Draw::Sparse { density: 0.25, of: Box::new(of) };
        assert_eq!(of(&sparse(sorted), None, 1), None);
        assert_eq!(of(&sparse(sparse(uniform.clone())), None, 1), None);
        let found = of(&sparse(uniform), None, 1).expect("a draw by element").base;
        let wanted = ElementSource { kind: 0, replaced: 1, a: 0.0, b: 2.0, share: 0.75 };
        assert_eq!(found, wanted);
    }

    #[test]
    fn pieces_are_drawn_one_over_the_other_and_stay_as_they_were() {
        let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
        let whole = DrawSegment { seed: 7, from: 0, to: 4_096 };
        let part = DrawSegment { seed: 8, from: 100, to: 9_999 };
        let layers = |pieces: &[DrawSegment], seed| {
            let draw = Draw::Pieces { of: Box::new(normal.clone()), pieces: pieces.to_vec() };
            let (dtype, pattern) = (Dtype::F16, None);
            let request =
                ElementRequest { draw: &draw, pattern, dtype, seed, stream: 1, count: 4_096 };
            ElementLayer::all(&request).expect("layers")
        };
        let (before, after) = (layers(&[whole], 1), layers(&[whole, part], 2));
        assert_eq!(before[0], after[0]);
        assert_eq!((after[1].from, after[1].count), (100, 3_996));
        assert_ne!(after[1].draw.key, after[0].draw.key);
    }

    #[test]
    fn poison_without_a_type_is_left_to_bytes() {
        let of = |poison, dtype| ElementDraw::of_poison(poison, 1, dtype, 10);
        assert!(of(Poison::Nan, Dtype::F16).is_some_and(|made| made.base.a.is_nan()));
        assert_eq!(of(Poison::Nan, Dtype::I32), None);
        assert_eq!(of(Poison::Pattern, Dtype::F16), None);
    }
}
