//! The mixture of inputs: which calls have which pattern, and what an argument then holds.
//!
//! A call has a pattern or is nominal; which one is derived from its secret, so a kernel cannot
//! tell what is coming, and both arms of a duel get the same bytes. The correctness check runs
//! through all patterns; timed calls are drawn from the same ones, but for those that would fill a
//! tensor with subnormal numbers: on many CPUs these take so long that nothing else would be timed.

use super::{CallLayout, Contract, PlacedArg, TensorRegion};
use crate::accuracy::AccuracyRuleSet;
use crate::draw::{self, Draw, ElementLayer, ElementRequest, InputPattern, PatternTarget, hash64};

/// One in this many calls has a pattern.
const ONE_IN: u64 = 4;

/// Patterns of a correctness check or a duel at most; which ones, if there are more, is secret.
const CHECKED_MAX: usize = 24;
const TIMED_MAX: usize = 8;

/// The pattern of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChosenPattern {
    /// The pattern.
    pub pattern: InputPattern,
    /// Which of the hostile draws it takes elements from, if it does.
    hostile: Option<usize>,
}

impl Contract {
    /// The hostile draws: those that are listed, and those that the accuracy class implies.
    pub fn hostile_draws(&self) -> Vec<Draw> {
        let implied = match self.accuracy {
            AccuracyRuleSet::Stable => {
                vec![Draw::Large { full: false }, Draw::Mixed, Draw::Denormals]
            }
            AccuracyRuleSet::Compensated | AccuracyRuleSet::Default => Vec::new(),
            AccuracyRuleSet::Primus | AccuracyRuleSet::Torch => Vec::new(),
            AccuracyRuleSet::Bitwise | AccuracyRuleSet::Custom { .. } => Vec::new(),
        };
        let mut draws = self.hostile.clone();
        draws.extend(implied.into_iter().filter(|draw| !self.hostile.contains(draw)));
        draws
    }

    /// The patterns of a correctness check, each at least once if there is room.
    pub fn checked_patterns(&self, secret: u64) -> Vec<ChosenPattern> {
        let mut all = self.patterns();
        shuffle(&mut all, secret);
        all.truncate(CHECKED_MAX);
        all
    }

    /// The patterns of the timed calls of a duel.
    pub fn timed_patterns(&self, secret: u64) -> Vec<ChosenPattern> {
        let hostile = self.hostile_draws();
        let quick = |chosen: &ChosenPattern| {
            let draw = chosen.hostile.and_then(|at| hostile.get(at));
            chosen.pattern.is_sparse() || !draw.is_some_and(Draw::is_subnormal)
        };
        let mut all: Vec<ChosenPattern> = self.patterns().into_iter().filter(quick).collect();
        shuffle(&mut all, secret);
        all.truncate(TIMED_MAX);
        all
    }

    /// The pattern of inputs that are not all finite, if there is an argument for it.
    pub fn non_finite(&self) -> Option<ChosenPattern> {
        self.unpromised(InputPattern::NonFinite)
    }

    /// The same for infinities: a sum of them may be done in another way. Also nothing if anything
    /// is summed.
    pub fn extreme(&self) -> Option<ChosenPattern> {
        self.unpromised(InputPattern::Extreme).filter(|_| self.reduction.is_none())
    }

    /// The pattern of inputs at the ends of their ranges, if an argument has any.
    pub fn ends(&self) -> Option<ChosenPattern> {
        self.unpromised(InputPattern::Ends)
    }

    /// The pattern of arguments with the same elements, if two are drawn alike.
    pub fn alike(&self) -> Option<ChosenPattern> {
        let chosen = self.unpromised(InputPattern::Alike)?;
        (0..self.args.len()).any(|index| self.twin(index) != index).then_some(chosen)
    }

    /// The first argument that is drawn as this one is.
    fn twin(&self, index: usize) -> usize {
        let key = |arg: &super::Arg| {
            let draw = arg.draw().filter(|draw| InputPattern::Alike.applies_to(draw, arg.dtype));
            draw.cloned().map(|draw| (draw, arg.dtype))
        };
        let own = key(&self.args[index]);
        let twin = self.args.iter().position(|arg| own.is_some() && key(arg) == own);
        twin.unwrap_or(index)
    }

    fn unpromised(&self, pattern: InputPattern) -> Option<ChosenPattern> {
        let applies =
            |arg: &super::Arg| arg.draw().is_some_and(|draw| pattern.applies_to(draw, arg.dtype));
        self.args.iter().any(applies).then_some(ChosenPattern { pattern, hostile: None })
    }

    fn patterns(&self) -> Vec<ChosenPattern> {
        let n_hostile = self.hostile_draws().len();
        let mut all = Vec::new();
        for pattern in self.mixture.iter().copied() {
            let applies = |arg: &super::Arg| {
                arg.draw().is_some_and(|draw| pattern.applies_to(draw, arg.dtype))
            };
            if !self.args.iter().any(applies) {
                continue;
            }
            if pattern.needs_hostile() {
                let each = (0..n_hostile).map(|at| ChosenPattern { pattern, hostile: Some(at) });
                all.extend(each);
            } else {
                all.push(ChosenPattern { pattern, hostile: None });
            }
        }
        all
    }

    /// Fills an argument of a call; a pure function of its arguments.
    pub fn fill(&self, layout: &CallLayout, index: usize, of: CallInputs, out: &mut [u8]) {
        let Some((draw, _)) = self.drawn_tensor(layout, index) else {
            return;
        };
        let is_alike = of.pattern.is_some_and(|chosen| chosen.pattern == InputPattern::Alike);
        let stream = if is_alike { self.twin(index) } else { index } as u64;
        let dtype = layout.dtypes[index];
        draw::fill(draw, dtype, of.seed, stream, out);
        let hostile = self.hostile_draws();
        if let Some(target) = self.pattern_of(layout, index, of, &hostile) {
            draw::apply(&target, of.seed, stream, out);
        }
    }

    /// How a device draws an argument of a call: the same distribution and pattern with other bits;
    /// nothing if only the host can.
    pub fn element_layers(
        &self,
        layout: &CallLayout,
        index: usize,
        of: CallInputs,
    ) -> Option<Vec<ElementLayer>> {
        let (draw, region) = self.drawn_tensor(layout, index)?;
        let hostile = self.hostile_draws();
        let dtype = layout.dtypes[index];
        ElementLayer::all(&ElementRequest {
            draw,
            pattern: self.pattern_of(layout, index, of, &hostile),
            dtype,
            seed: of.seed,
            stream: index as u64,
            count: region.bytes / dtype.bytes() as u64,
        })
    }

    /// What a tensor is drawn from, and where it is; nothing for another argument.
    fn drawn_tensor(&self, layout: &CallLayout, index: usize) -> Option<(&Draw, TensorRegion)> {
        match (self.args.get(index)?.draw()?, layout.places.get(index)?) {
            (draw, PlacedArg::Input(region) | PlacedArg::Output(region)) => Some((draw, *region)),
            (_, PlacedArg::Integer(_) | PlacedArg::Float(_)) => None,
        }
    }

    /// The pattern of a tensor in a call: one argument has it for certain, others by a coin toss;
    /// all of them are at the ends of their ranges, if one is.
    fn pattern_of<'a>(
        &'a self,
        layout: &CallLayout,
        index: usize,
        of: CallInputs,
        hostile: &'a [Draw],
    ) -> Option<PatternTarget<'a>> {
        let chosen = of.pattern?;
        let dtype = layout.dtypes[index];
        let own = self.args.get(index)?.draw()?;
        if !chosen.pattern.applies_to(own, dtype) {
            return None;
        }
        let applies = |arg: &super::Arg| {
            arg.draw().is_some_and(|draw| chosen.pattern.applies_to(draw, arg.dtype))
        };
        let places: Vec<usize> = (0..self.args.len()).filter(|i| applies(&self.args[*i])).collect();
        let first = hash64(of.seed, b"pattern") as usize % places.len().max(1);
        let coin = hash64(of.seed, &(index as u64).to_le_bytes()) & 1 == 0;
        // Sums are largest where all arguments are at an end.
        let all = chosen.pattern == InputPattern::Ends;
        if places.get(first) != Some(&index) && coin && !all {
            return None;
        }
        Some(PatternTarget {
            pattern: chosen.pattern,
            hostile: match chosen.pattern {
                InputPattern::Ends => Some(own),
                _ => chosen.hostile.and_then(|at| hostile.get(at)),
            },
            dtype,
            row: layout.extents[index].last().map_or(1, |n| *n as usize),
        })
    }
}

/// What the inputs of one call are derived from.
#[derive(Clone, Copy, Debug)]
pub struct CallInputs {
    /// The secret of the call.
    pub seed: u64,
    /// Its pattern; none if it is nominal.
    pub pattern: Option<ChosenPattern>,
}

impl ChosenPattern {
    /// The pattern of a call with this secret, out of those of a duel.
    pub fn of(seed: u64, among: &[ChosenPattern]) -> Option<ChosenPattern> {
        let drawn = hash64(seed, b"mixture");
        if !drawn.is_multiple_of(ONE_IN) || among.is_empty() {
            return None;
        }
        among.get((drawn / ONE_IN) as usize % among.len()).copied()
    }

    /// Whether it is about what is not finite.
    pub fn is_about_non_finite(&self) -> bool {
        matches!(self.pattern, InputPattern::NonFinite | InputPattern::Extreme)
    }

    /// In words.
    pub fn describe(&self) -> String {
        format!("with {}", self.pattern.describe())
    }
}

/// Brings patterns into a secret order, one of each kind first.
fn shuffle(all: &mut [ChosenPattern], secret: u64) {
    let mut seen: Vec<(InputPattern, usize)> = Vec::new();
    let mut keyed: Vec<(usize, u64, ChosenPattern)> = Vec::with_capacity(all.len());
    let key = |chosen: &ChosenPattern, at: usize| hash64(secret, &[chosen.pattern as u8, at as u8]);
    let mut order: Vec<ChosenPattern> = all.to_vec();
    order.sort_by_key(|chosen| key(chosen, chosen.hostile.map_or(0, |at| at + 1)));
    for chosen in order {
        let n = match seen.iter_mut().find(|(pattern, _)| *pattern == chosen.pattern) {
            Some((_, n)) => {
                *n += 1;
                *n
            }
            None => {
                seen.push((chosen.pattern, 0));
                0
            }
        };
        keyed.push((n, key(&chosen, 255), chosen));
    }
    keyed.sort_by_key(|(n, key, _)| (*n, *key));
    for (to, (_, _, chosen)) in all.iter_mut().zip(keyed) {
        *to = chosen;
    }
}
