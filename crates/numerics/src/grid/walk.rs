//! Finds the valid settings of a space without enumerating all combinations.
//!
//! The knobs are set one after the other, starting with those that complete a restriction soonest.
//! A restriction over few values becomes tables: which values of its first knob, of its first two
//! and so on can still be completed. One over many values is bounded by interval arithmetic until
//! all of its knobs are set.

use super::restriction::DividesByZero;
use super::{Axis, Grid, Restriction, code};
use crate::stats::DrawRng;
use std::collections::BTreeSet;
use std::fmt;

/// Maximum number of valid settings to list; of a larger space a sample is searched.
pub const VALID_MAX: usize = 4_000_000;
/// Settings in such a sample.
const SAMPLE: usize = 200_000;
/// Maximum number of combinations of a restriction that are put into a table.
const TABLE_MAX: usize = 1 << 18;
/// Maximum number of partial settings visited in one walk.
const STEPS_MAX: u64 = 20_000_000;
/// The same when looking for contradicting restrictions.
const BLAME_STEPS_MAX: u64 = 5_000_000;
/// The same for one setting of a sample, and for the whole sample.
const DESCENT_STEPS_MAX: u64 = 100_000;
const SAMPLE_STEPS_MAX: u64 = 20_000_000;

/// Why there is no grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridError {
    /// There are no knobs.
    NoKnobs,
    /// Two knobs have the same name.
    Twice(String),
    /// There are more combinations than can be numbered.
    TooLarge,
    /// The restrictions prune too late.
    TooLong,
    /// No setting is valid; these restrictions together forbid everything.
    Empty(Vec<String>),
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKnobs => write!(f, "there are no knobs"),
            Self::Twice(name) => write!(f, "the knob {name} is declared twice"),
            Self::TooLarge => write!(f, "the space has more than 10^19 combinations"),
            Self::TooLong => write!(
                f,
                "valid settings are too rare: none was found in {STEPS_MAX} partial settings"
            ),
            Self::Empty(texts) => match texts.as_slice() {
                [] => write!(f, "no setting is valid"),
                [one] => write!(f, "no setting satisfies `{one}`"),
                several => write!(f, "no setting satisfies `{}` together", several.join("` and `")),
            },
        }
    }
}

/// How many combinations there are without restrictions.
pub(super) fn combinations(axes: &[Axis]) -> Result<u64, GridError> {
    if axes.is_empty() {
        return Err(GridError::NoKnobs);
    }
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|earlier| earlier.name == axis.name) {
            return Err(GridError::Twice(axis.name.clone()));
        }
    }
    let product =
        axes.iter().try_fold(1_u64, |product, axis| product.checked_mul(axis.values.len() as u64));
    product.ok_or(GridError::TooLarge)
}

/// The grid of the axes under the restrictions.
pub(super) fn walk(axes: Vec<Axis>, restrictions: &[Restriction]) -> Result<Grid, GridError> {
    combinations(&axes)?;
    let mut walker = GridWalker::new(&axes, restrictions);
    let end = walker.go_on(0, VALID_MAX, &mut |_| {});
    let mut codes = std::mem::take(&mut walker.found);
    let mut notes = walker.notes();
    let whole = match end {
        WalkEnd::Through => true,
        WalkEnd::Full => {
            codes = walker.sample();
            notes.push(format!(
                "there are more than {VALID_MAX} valid settings; {} of them are searched",
                codes.len()
            ));
            false
        }
        WalkEnd::Tired if codes.is_empty() => return Err(GridError::TooLong),
        WalkEnd::Tired => {
            let sample = walker.sample();
            codes = if sample.is_empty() { codes } else { sample };
            notes.push(format!(
                "the restrictions are too hard to list all valid settings; {} of them \
                 are searched",
                codes.len()
            ));
            false
        }
    };
    if codes.is_empty() {
        return Err(GridError::Empty(blame(&axes, restrictions)));
    }
    codes.sort_unstable();
    let mut ranks = Vec::with_capacity(codes.len() * axes.len());
    let weights = weights(&axes);
    for code in &codes {
        let mut rest = *code;
        for weight in &weights {
            ranks.push((rest / weight) as u16);
            rest %= weight;
        }
    }
    Ok(Grid { axes, ranks, codes, notes, whole })
}

/// What one step of each knob adds to a code.
fn weights(axes: &[Axis]) -> Vec<u64> {
    let unit = |index: usize| {
        let behind = &axes[index + 1..];
        behind.iter().map(|axis| axis.values.len() as u64).product()
    };
    (0..axes.len()).map(unit).collect()
}

/// A smallest set of restrictions that forbids everything, as far as one can be found.
fn blame(axes: &[Axis], restrictions: &[Restriction]) -> Vec<String> {
    let mut guilty: Vec<Restriction> = restrictions.to_vec();
    let mut at = 0;
    while at < guilty.len() {
        let mut fewer = guilty.clone();
        fewer.remove(at);
        let mut walker = GridWalker::new(axes, &fewer);
        walker.steps_max = BLAME_STEPS_MAX;
        let end = walker.go_on(0, 1, &mut |_| {});
        if end == WalkEnd::Through && walker.found.is_empty() { guilty = fewer } else { at += 1 }
    }
    let text = |restriction: &Restriction| restriction.text().to_owned();
    guilty.iter().map(text).collect()
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkEnd {
    Through,
    Full,
    Tired,
}

/// One restriction during the walk.
struct RestrictionCheck<'a> {
    restriction: &'a Restriction,
    /// Its axes in the order of the walk.
    order: Vec<usize>,
    /// For its first one, two and more axes: which of their values can still be completed.
    tables: Option<Vec<Vec<bool>>>,
    /// The position of the values chosen so far in the tables.
    at: Vec<usize>,
    by_zero: u64,
}

struct GridWalker<'a> {
    axes: &'a [Axis],
    /// Which axis is set at each depth.
    order: Vec<usize>,
    checks: Vec<RestrictionCheck<'a>>,
    /// For each depth: the checks that involve its axis, and the axis's position in each.
    due: Vec<Vec<(usize, usize)>>,
    ranks: Vec<u16>,
    known: Vec<bool>,
    found: Vec<u64>,
    steps: u64,
    steps_max: u64,
}

impl<'a> GridWalker<'a> {
    fn new(axes: &'a [Axis], restrictions: &'a [Restriction]) -> Self {
        let order = order_of(axes, restrictions);
        let mut checks: Vec<RestrictionCheck<'a>> = Vec::with_capacity(restrictions.len());
        for restriction in restrictions {
            checks.push(RestrictionCheck::new(restriction, axes, &order));
        }
        let part = |axis: usize| {
            let place = |(index, check): (usize, &RestrictionCheck<'_>)| {
                let place = check.order.iter().position(|own| *own == axis);
                place.map(|place| (index, place))
            };
            checks.iter().enumerate().filter_map(place).collect()
        };
        Self {
            due: order.iter().map(|axis| part(*axis)).collect(),
            axes,
            order,
            checks,
            ranks: vec![0; axes.len()],
            known: vec![false; axes.len()],
            found: Vec::new(),
            steps: 0,
            steps_max: STEPS_MAX,
        }
    }

    /// Sets the axes from a depth on in every allowed way, until there are `full`.
    fn go_on(&mut self, depth: usize, full: usize, mix: &mut dyn FnMut(&mut Vec<u16>)) -> WalkEnd {
        let Some(axis) = self.order.get(depth).copied() else {
            // Restrictions on constants alone are not checked anywhere else.
            let constant = |check: &RestrictionCheck<'_>| check.order.is_empty();
            let allowed = self
                .checks
                .iter()
                .filter(|check| constant(check))
                .all(|check| check.restriction.holds(&self.ranks) == Ok(true));
            if allowed {
                self.found.push(code(self.axes, &self.ranks));
            }
            return if self.found.len() >= full { WalkEnd::Full } else { WalkEnd::Through };
        };
        let mut values: Vec<u16> = (0..self.axes[axis].values.len() as u16).collect();
        mix(&mut values);
        self.known[axis] = true;
        let mut end = WalkEnd::Through;
        for rank in values {
            self.steps += 1;
            if self.steps > self.steps_max {
                end = WalkEnd::Tired;
                break;
            }
            self.ranks[axis] = rank;
            if !self.allowed(depth) {
                continue;
            }
            end = self.go_on(depth + 1, full, mix);
            if end != WalkEnd::Through {
                break;
            }
        }
        self.known[axis] = false;
        end
    }

    /// Whether every restriction can still hold after the axis that was just set.
    fn allowed(&mut self, depth: usize) -> bool {
        for (index, place) in &self.due[depth] {
            let check = &mut self.checks[*index];
            let axis = check.order[*place];
            let rank = usize::from(self.ranks[axis]);
            let before = place.checked_sub(1).map_or(0, |place| check.at[place]);
            check.at[*place] = before * self.axes[axis].values.len() + rank;
            let allowed = match &check.tables {
                Some(tables) => tables[*place][check.at[*place]],
                None if place + 1 < check.order.len() => {
                    check.restriction.may_hold(&self.ranks, &self.known)
                }
                None => match check.restriction.holds(&self.ranks) {
                    Ok(holds) => holds,
                    Err(DividesByZero) => {
                        check.by_zero += 1;
                        false
                    }
                },
            };
            if !allowed {
                return false;
            }
        }
        true
    }

    /// Valid settings drawn at random, each by one descent.
    fn sample(&mut self) -> Vec<u64> {
        let mut draws = DrawRng::new(1);
        let mut sample = BTreeSet::new();
        self.steps = 0;
        let mut left = SAMPLE_STEPS_MAX;
        // The default is tried first, so it is part of every sample.
        let standing: Vec<u16> = self.axes.iter().map(|axis| axis.default as u16).collect();
        let holds = |check: &RestrictionCheck<'_>| check.restriction.holds(&standing) == Ok(true);
        if self.checks.iter().all(holds) {
            sample.insert(code(self.axes, &standing));
        }
        for _ in 0..SAMPLE * 2 {
            self.found.clear();
            left = left.saturating_sub(self.steps);
            self.steps = 0;
            self.steps_max = DESCENT_STEPS_MAX;
            self.known.fill(false);
            self.go_on(0, 1, &mut |values| {
                for last in (1..values.len()).rev() {
                    values.swap(last, draws.below(last + 1));
                }
            });
            sample.extend(self.found.first());
            if sample.len() == SAMPLE || left == 0 {
                break;
            }
        }
        sample.into_iter().collect()
    }

    fn notes(&self) -> Vec<String> {
        let note = |check: &RestrictionCheck<'_>| {
            let text = check.restriction.text();
            (check.by_zero > 0).then(|| {
                format!("`{text}` divides by zero for some values; settings with them are left out")
            })
        };
        self.checks.iter().filter_map(note).collect()
    }
}

impl<'a> RestrictionCheck<'a> {
    fn new(restriction: &'a Restriction, axes: &[Axis], order: &[usize]) -> Self {
        let own = |axis: &&usize| restriction.axes().contains(*axis);
        let order: Vec<usize> = order.iter().filter(own).copied().collect();
        let size = order.iter().try_fold(1_usize, |size, axis| {
            let size = size.checked_mul(axes[*axis].values.len())?;
            (size <= TABLE_MAX).then_some(size)
        });
        let mut check =
            Self { restriction, at: vec![0; order.len()], order, tables: None, by_zero: 0 };
        if let Some(size) = size {
            check.tabulate(axes, size);
        }
        check
    }

    fn tabulate(&mut self, axes: &[Axis], size: usize) {
        let mut ranks = vec![0_u16; axes.len()];
        let mut last = Vec::with_capacity(size);
        for index in 0..size {
            let mut rest = index;
            for axis in self.order.iter().rev() {
                let len = axes[*axis].values.len();
                ranks[*axis] = (rest % len) as u16;
                rest /= len;
            }
            let holds = self.restriction.holds(&ranks);
            self.by_zero += u64::from(holds.is_err());
            last.push(holds == Ok(true));
        }
        let mut tables = vec![last];
        for axis in self.order.iter().skip(1).rev() {
            let len = axes[*axis].values.len();
            let any = |values: &[bool]| values.iter().any(|value| *value);
            let shorter = tables.last().map(|table| table.chunks(len).map(any).collect());
            tables.extend(shorter);
        }
        tables.reverse();
        self.tables = Some(tables);
    }
}

/// The axes in the order of the walk: restrictions with the fewest combinations first.
fn order_of(axes: &[Axis], restrictions: &[Restriction]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(axes.len());
    let mut waiting: Vec<&Restriction> = restrictions.iter().collect();
    loop {
        let open = |restriction: &&Restriction| {
            let free = restriction.axes().iter().filter(|a| !order.contains(a));
            free.map(|axis| (axes[*axis].values.len() as f64).ln()).sum::<f64>()
        };
        let next =
            (0..waiting.len()).min_by(|a, b| open(&waiting[*a]).total_cmp(&open(&waiting[*b])));
        let Some(next) = next else {
            break;
        };
        let restriction = waiting.remove(next);
        let mut own: Vec<usize> = restriction.axes().to_vec();
        // Smaller ones first: their tables rule out the most in the fewest steps.
        own.sort_by_key(|axis| axes[*axis].values.len());
        for axis in own {
            if !order.contains(&axis) {
                order.push(axis);
            }
        }
    }
    let rest: Vec<usize> = (0..axes.len()).filter(|axis| !order.contains(axis)).collect();
    order.extend(rest);
    order
}
