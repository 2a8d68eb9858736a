//! Shapes near the listed ones, for the correctness check: a kernel that only handles what is
//! listed would be wrong, or slow, for the next user.

use super::{ArgKind, Contract};
use crate::case::{Case, CaseSet};
use crate::expr;
use crate::stats::DrawRng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Parameters that are drawn beyond every listed value, at most.
const BEYOND_MAX: usize = 4;

/// Parameters that are very small beside large ones, at most; and how much larger those are.
const THIN_MAX: usize = 2;
const THIN_GROWTH: u64 = 4;

/// How many sizes are thin: one and those above it.
const THIN_SIZES: usize = 3;

/// Sizes of a very small shape at most, and ranges beyond the listed sizes, each twice the last.
const SMALL_MAX: u64 = 9;
const BEYOND_RANGES: usize = 4;

/// By how much the memory of a call may exceed that of the largest listed case, and always may be.
const BYTES_FACTOR: u64 = 2;
const BYTES_MIN: u64 = 1 << 20;

/// From this size on, memory may not be enough for more.
const BYTES_LARGE: u64 = 1 << 30;

/// The largest tile that is thought of.
const TILE_MAX: u64 = 512;

/// How often other sizes are halved to make room.
const HALVINGS_MAX: u32 = 24;

/// The shapes on which a kernel must be right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedShapes {
    /// Also on shapes near the listed ones, where the incumbent is right.
    #[default]
    Any,
    /// Only on those that are listed.
    Listed,
}

/// What is special about a shape that is not listed.
#[derive(Clone, Copy)]
enum ShapeCorner<'a> {
    /// This parameter is larger than in any listed case.
    Beyond(&'a String),
    /// Odd sizes, none larger than listed.
    Odd,
    /// Sizes one above a multiple of a large power of two: what tiles of most sizes leave over.
    OnePast,
    /// Sizes that are twice an odd number, none larger than listed.
    TwiceOdd,
    /// Multiples of such a power of two, none larger than listed.
    Even(PowersOfTwo),
    /// Multiples of the largest power of two in each size, which is what fast paths ask for; this
    /// parameter is larger than listed, if there are others that make room.
    Tiled(&'a String),
    /// Very small sizes.
    Small,
    /// This parameter is very small, and the others are as large as listed or larger.
    Thin(&'a String),
}

/// A parameter of a shape, and what is listed.
struct ListedSize<'a> {
    name: &'a str,
    /// In the case that a shape is made of.
    value: u64,
    /// The largest of all cases.
    most: u64,
    /// Whether no other parameter can make room for it.
    alone: bool,
}

impl ShapeCorner<'_> {
    /// What is special about this size there, where all sizes that can be are divided by something.
    fn size(self, of: &ListedSize<'_>, divisor: u64, draws: &mut DrawRng) -> u64 {
        let (value, part) = (of.value, of.value / divisor);
        match self {
            Self::Beyond(beyond) if beyond == of.name => above(of.most, draws),
            Self::OnePast => one_past(part),
            Self::TwiceOdd => 2 * part_of(part / 2, draws),
            Self::Even(powers) => even_part(part, powers, draws),
            Self::Tiled(_) if of.alone => tiled(part, TiledCounts::Any, draws),
            Self::Tiled(lead) if lead == of.name => tiled(value, TiledCounts::More, draws),
            Self::Tiled(_) => tiled(part, TiledCounts::Fewer, draws),
            Self::Small => part_of(value.min(SMALL_MAX) / divisor, draws),
            Self::Thin(thin) if thin == of.name => 1 + draws.below(THIN_SIZES) as u64,
            Self::Thin(_) => part_of(value.saturating_mul(THIN_GROWTH) / divisor, draws),
            Self::Beyond(_) | Self::Odd => part_of(part, draws),
        }
    }
}

/// Powers of two from four to the largest that fits several times.
#[derive(Clone, Copy)]
enum PowersOfTwo {
    LowerHalf,
    UpperHalf,
}

/// How many tiles a size may have, next to a listed one.
#[derive(Clone, Copy)]
enum TiledCounts {
    Fewer,
    More,
    Any,
}

impl CheckedShapes {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Contract {
    /// Cases that are not listed: for each parameter of a shape one that is larger than all listed
    /// ones, one of odd and three of even sizes, one of sizes just above those of tiles, one that
    /// tiles fit into as into the listed ones, one of very small sizes, and some with one very
    /// small size beside large ones. Never derived from a hidden case.
    pub fn other_shapes(&self, cases: &[Case], secret: u64) -> Vec<Case> {
        let shown: Vec<&Case> = cases.iter().filter(|case| case.set != CaseSet::Hidden).collect();
        let names = self.sizes();
        if self.shapes == CheckedShapes::Listed || shown.is_empty() || names.is_empty() {
            return Vec::new();
        }
        let bytes = |case: &Case| {
            let layout = self.layout(case).ok()?;
            layout.input_bytes.checked_add(layout.output_bytes)
        };
        let most = shown.iter().filter_map(|case| bytes(case)).max().unwrap_or(0);
        let most = match most >= BYTES_LARGE {
            true => most,
            false => (most * BYTES_FACTOR).max(BYTES_MIN),
        };
        let mut draws = DrawRng::new(secret);
        let mut large: Vec<&String> = names.iter().collect();
        while large.len() > BEYOND_MAX {
            large.swap_remove(draws.below(large.len()));
        }
        let mut made: Vec<Case> = Vec::new();
        let corners = large.into_iter().map(ShapeCorner::Beyond);
        let leads: Vec<&String> = names.iter().collect();
        let tiled = ShapeCorner::Tiled(leads[draws.below(leads.len())]);
        let mut thin: Vec<&String> = if leads.len() > 1 { leads.clone() } else { Vec::new() };
        while thin.len() > THIN_MAX {
            thin.swap_remove(draws.below(thin.len()));
        }
        let others = [ShapeCorner::Odd, ShapeCorner::OnePast, ShapeCorner::TwiceOdd];
        let even = [PowersOfTwo::LowerHalf, PowersOfTwo::UpperHalf].map(ShapeCorner::Even);
        let smooth = even.into_iter().chain([tiled, ShapeCorner::Small]);
        let thin = thin.into_iter().map(ShapeCorner::Thin);
        for corner in corners.chain(others).chain(smooth).chain(thin) {
            let base = shown[draws.below(shown.len())];
            let listed = |name: &str| {
                let values = shown.iter().filter_map(|case| case.params.get(name));
                values.filter_map(|value| value.parse::<u64>().ok()).max()
            };
            let mut case = base.clone();
            // Smaller other sizes until it fits.
            for divisor in (0..HALVINGS_MAX).map(|n| 1 << n) {
                let mut params = BTreeMap::new();
                for name in &names {
                    let value = base.params.get(name).and_then(|value| value.parse().ok());
                    let Some(value) = value else {
                        continue;
                    };
                    let most = listed(name).unwrap_or(value);
                    let of = ListedSize { name, value, most, alone: names.len() == 1 };
                    let value = corner.size(&of, divisor, &mut draws);
                    params.insert(name.clone(), value.to_string());
                }
                case = base.clone().with_params(&params);
                if bytes(&case).is_some_and(|bytes| bytes <= most) {
                    break;
                }
            }
            let is_new = cases.iter().chain(&made).all(|other| other.params != case.params);
            if is_new && bytes(&case).is_some_and(|bytes| bytes <= most) {
                made.push(case);
            }
        }
        made
    }

    /// The parameters in the shapes of the arguments.
    fn sizes(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for arg in &self.args {
            let (ArgKind::Input { shape, .. }
            | ArgKind::Output { shape }
            | ArgKind::InOut { shape, .. }) = &arg.kind
            else {
                continue;
            };
            let parsed = shape.iter().filter_map(|extent| expr::parse_expr(extent).ok());
            for extent in parsed {
                names.extend(extent.names().into_iter().map(str::to_owned));
            }
        }
        names
    }
}

/// An odd number up to 2, 3, 5 or 9 times this one.
fn above(value: u64, draws: &mut DrawRng) -> u64 {
    let most = value.clamp(1, 1 << 40) << draws.below(BEYOND_RANGES);
    let more = 1 + draws.below(most as usize) as u64;
    value.saturating_add(more) | 1
}

/// An odd number between a third of this part and all of it.
fn part_of(part: u64, draws: &mut DrawRng) -> u64 {
    let most = part.max(1);
    let least = (most / 3).max(1);
    (least + draws.below((most - least + 1) as usize) as u64) | 1
}

/// An odd multiple of one of these powers of two, up to this part.
fn even_part(part: u64, powers: PowersOfTwo, draws: &mut DrawRng) -> u64 {
    let odd = part_of(part / 2, draws);
    let most = (odd / 2).max(1).ilog2() as usize;
    let half = most.div_ceil(2);
    let twos = match powers {
        PowersOfTwo::LowerHalf => 1 + draws.below(half.max(1)),
        PowersOfTwo::UpperHalf => half + 1 + draws.below((most - half).max(1)),
    };
    let twos = twos.min(most);
    (((odd >> twos) - 1) | 1) << (twos + 1)
}

/// Up to twice this part, but not this part, in steps of the largest power of two in it; one that
/// is a power of two is taken in steps of its half.
fn tiled(part: u64, counts: TiledCounts, draws: &mut DrawRng) -> u64 {
    let part = part.max(2);
    let tile = 1 << part.trailing_zeros();
    let tile = if tile == part { tile / 2 } else { tile };
    let count = (part / tile) as usize;
    let (fewer, more) = (1 + draws.below(count - 1), count + 1 + draws.below(count));
    let taken = match counts {
        TiledCounts::Fewer => fewer,
        TiledCounts::More => more,
        TiledCounts::Any => [fewer, more][draws.below(2)],
    };
    tile * taken as u64
}

/// One above a multiple of a power of two, about this part of a size.
fn one_past(part: u64) -> u64 {
    let part = part.max(1);
    let tile = (1 << part.ilog2()).min(TILE_MAX);
    part / tile * tile + 1
}

#[cfg(test)]
mod tests {
    use super::super::tests::{case, product};
    use super::*;

    fn value(case: &Case, name: &str) -> u64 {
        case.params[name].parse().expect("a size")
    }

    #[test]
    fn every_size_is_once_larger_than_any_listed_one_and_memory_is_bounded() {
        let contract = product();
        let cases = [case(&[("M", 3_000), ("K", 192)]), case(&[("M", 64), ("K", 7_000)])];
        let bytes = |case: &Case| {
            let layout = contract.layout(case).expect("a layout");
            layout.input_bytes + layout.output_bytes
        };
        let most = cases.iter().map(bytes).max().expect("a case");
        let mut beyond = [0, 0];
        for secret in 0..200 {
            let made = contract.other_shapes(&cases, secret);
            for (n, (name, listed)) in beyond.iter_mut().zip([("M", 3_000), ("K", 7_000)]) {
                *n += usize::from(made.iter().any(|case| value(case, name) > listed));
            }
            assert!(made.iter().all(|case| bytes(case) <= (2 * most).max(BYTES_MIN)));
            let is_odd = |case: &Case| ["M", "K"].iter().all(|name| value(case, name) % 2 == 1);
            assert!(made.iter().filter(|case| is_odd(case)).count() >= 4, "{made:?}");
            assert_eq!(made, contract.other_shapes(&cases, secret));
        }
        assert_eq!(beyond, [200, 200]);
        assert_ne!(contract.other_shapes(&cases, 1), contract.other_shapes(&cases, 2));
    }

    #[test]
    fn some_sizes_are_even_and_some_are_as_smooth_as_the_listed_ones() {
        let contract = product();
        let listed = case(&[("M", 64), ("K", 192)]);
        let fits = |case: &Case, name, tile| value(case, name).is_multiple_of(tile);
        let mut seen = BTreeSet::new();
        for secret in 0..200 {
            let made = contract.other_shapes(std::slice::from_ref(&listed), secret);
            let is_even =
                |case: &&Case| ["M", "K"].iter().all(|name| value(case, name).is_multiple_of(2));
            let even = made.iter().filter(is_even);
            assert_eq!(even.count(), 4, "{made:?}");
            assert!(made.iter().any(|case| value(case, "M") % 4 == 2), "{made:?}");
            let is_beyond = |case: &Case| value(case, "M") > 64 || value(case, "K") > 192;
            let is_smooth =
                |case: &&Case| fits(case, "M", 32) && fits(case, "K", 64) && is_beyond(case);
            let smooth: Vec<&Case> = made.iter().filter(is_smooth).collect();
            assert!(!smooth.is_empty(), "{made:?}");
            for case in smooth {
                let (m, k) = (value(case, "M"), value(case, "K"));
                assert!(m != 64 && k != 192, "{m} {k}");
                seen.extend([("M", m), ("K", k)]);
            }
        }
        let beyond = [("M", 96), ("M", 128), ("K", 256), ("K", 320), ("K", 384)];
        let below = [("M", 32), ("K", 64), ("K", 128)];
        assert_eq!(seen, beyond.into_iter().chain(below).collect());
        // Where tiles of 512 are listed, a fast path for tiles of 16 that drops what is left of
        // tiles of 256 meets such a size each time.
        let listed = case(&[("M", 256), ("K", 512)]);
        for secret in 0..200 {
            let made = contract.other_shapes(std::slice::from_ref(&listed), secret);
            let meets = |case: &Case| {
                fits(case, "K", 16) && !fits(case, "K", 256) && value(case, "K") <= 512
            };
            assert!(made.iter().any(meets), "{made:?}");
        }
        // A single size is made larger or smaller.
        let mut draws = DrawRng::new(1);
        let any: BTreeSet<u64> =
            (0..100).map(|_| tiled(8_192, TiledCounts::Any, &mut draws)).collect();
        assert_eq!(any, [4_096, 12_288, 16_384].into());
    }

    #[test]
    fn each_of_two_sizes_is_once_very_small_beside_a_large_one() {
        let contract = product();
        let listed = case(&[("M", 64), ("K", 192)]);
        for secret in 0..200 {
            let made = contract.other_shapes(std::slice::from_ref(&listed), secret);
            let thin = |small: &str, large: &str, least: u64| {
                let is = |case: &&Case| value(case, small) <= 3 && value(case, large) > least;
                made.iter().filter(is).count()
            };
            assert!(thin("M", "K", 192) > 0 && thin("K", "M", 64) > 0, "{made:?}");
        }
    }

    #[test]
    fn where_a_listed_shape_is_very_large_no_other_one_is_larger() {
        let mut contract = product();
        contract.modules.device = Some("cuda".into());
        let listed = case(&[("M", 100_000), ("K", 100_000)]);
        let bytes = |case: &Case| {
            let layout = contract.layout(case).expect("a layout");
            layout.input_bytes + layout.output_bytes
        };
        let most = bytes(&listed);
        assert!(most > 8 << 30, "{most}");
        for secret in 0..50 {
            let made = contract.other_shapes(std::slice::from_ref(&listed), secret);
            assert!(made.len() > 2 && made.iter().all(|case| bytes(case) <= most), "{made:?}");
        }
    }

    #[test]
    fn nothing_is_derived_from_hidden_cases_or_where_only_listed_shapes_count() {
        let mut contract = product();
        let shown = case(&[("M", 192), ("K", 64)]);
        let hidden = Case { set: CaseSet::Hidden, ..shown.clone() };
        assert_eq!(contract.other_shapes(&[hidden], 1), Vec::new());
        assert!(!contract.other_shapes(std::slice::from_ref(&shown), 1).is_empty());
        contract.shapes = CheckedShapes::Listed;
        assert_eq!(contract.other_shapes(&[shown], 1), Vec::new());
    }
}
