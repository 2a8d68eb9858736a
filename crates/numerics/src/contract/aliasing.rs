//! The aliasing check: calls at the same addresses, with inputs rewritten in between, some only
//! in part.
//!
//! Real use calls a kernel again and again with the same tensors and changes some of them in
//! place, such as weights after every training step. What a kernel caches between calls must
//! follow. A cache keyed by an address, by a sample of the elements or by a call count does not:
//! in one of these steps the key stays the same although the data have changed.

use super::{Arg, ArgKind, CallLayout, Contract, PlacedArg};
use crate::draw::{Draw, DrawSegment, hash64};

/// Steps of an aliasing check.
pub const ALIASING_STEPS: usize = 8;

/// Elements of the smallest change, but at most one in this many of a tensor: if a kernel looks
/// at a sample of the elements, the sample misses most small changes.
const FEW: u64 = 16;

/// One step of an aliasing check.
#[derive(Clone, Debug, PartialEq)]
pub struct AliasingStep {
    /// The contract with its inputs drawn as they are in memory in this step.
    pub contract: Contract,
    /// What changed since the previous step, in words.
    pub what: String,
}

/// How much of a tensor changes.
#[derive(Clone, Copy)]
enum ChangeExtent {
    Whole,
    /// A contiguous range of a quarter to a half.
    Stretch,
    /// A few neighbors.
    Few,
}

impl Contract {
    /// The steps of an aliasing check on a case with that layout: all inputs are new in the first
    /// one, and one of them changes in each of the others. Everything is derived from a secret.
    pub fn aliasing_steps(&self, layout: &CallLayout, secret: u64) -> Vec<AliasingStep> {
        let drawn = |what: u64| hash64(secret, &what.to_le_bytes());
        let mut contract = self.clone();
        let mut tensors = Vec::new();
        for (index, arg) in contract.args.iter_mut().enumerate() {
            let elements = match layout.places.get(index) {
                Some(PlacedArg::Input(region) | PlacedArg::Output(region)) => region.elements,
                Some(PlacedArg::Integer(_) | PlacedArg::Float(_)) | None => 0,
            };
            // What the setup gets stays the same until it is called again.
            let changes = !self.is_prepared(index);
            let Some(draw) = draw_of(arg).filter(|draw| changes && draw.varies()) else {
                continue;
            };
            let of = Box::new(draw.clone());
            let whole = DrawSegment { seed: drawn(index as u64), from: 0, to: elements };
            *draw = Draw::Pieces { of, pieces: vec![whole] };
            if elements > 0 {
                tensors.push((index, elements));
            }
        }
        let mut steps =
            vec![AliasingStep { contract: contract.clone(), what: "all inputs are new".into() }];
        let turns = 1..ALIASING_STEPS as u64;
        for turn in turns.take_while(|_| !tensors.is_empty()) {
            let chosen = drawn(1 << 32).wrapping_add(turn) % tensors.len() as u64;
            let (index, elements) = tensors[chosen as usize];
            // The smallest change is the hardest to notice: it gets at least one of two turns, and
            // two of three. A change of everything was the first step.
            let visit = (turn - 1) / tensors.len() as u64;
            let extent = match drawn((1 << 34) + chosen).wrapping_add(visit) % 3 {
                0 => ChangeExtent::Stretch,
                _ => ChangeExtent::Few,
            };
            let secret = drawn((1 << 33) + turn);
            let what = change(&mut contract.args[index], elements, extent, secret);
            steps.push(AliasingStep { contract: contract.clone(), what });
        }
        steps
    }
}

fn draw_of(arg: &mut Arg) -> Option<&mut Draw> {
    match &mut arg.kind {
        ArgKind::Input { draw, .. } | ArgKind::InOut { draw, .. } => Some(draw),
        ArgKind::Scalar { .. } | ArgKind::Output { .. } => None,
    }
}

/// Redraws a part of a tensor, and says which.
fn change(arg: &mut Arg, elements: u64, extent: ChangeExtent, secret: u64) -> String {
    let name = arg.name.clone();
    let Some(Draw::Pieces { of, pieces }) = draw_of(arg) else {
        return "nothing changed".into();
    };
    let seed = hash64(secret, b"seed");
    let extent = if of.is_by_element() { extent } else { ChangeExtent::Whole };
    let len = match extent {
        ChangeExtent::Whole => elements,
        ChangeExtent::Stretch => {
            elements.div_ceil(4) + hash64(secret, b"more") % (elements / 4 + 1)
        }
        ChangeExtent::Few => FEW.min(elements / FEW),
    };
    let len = len.clamp(1, elements);
    let from = hash64(secret, b"from") % (elements - len + 1);
    if len == elements {
        // Everything is overwritten.
        pieces.clear();
    }
    pieces.push(DrawSegment { seed, from, to: from + len });
    if len == elements {
        format!("only `{name}` changed")
    } else {
        format!("only {len} of {elements} elements of `{name}` changed")
    }
}
