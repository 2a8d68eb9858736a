//! A layout that shows every access beyond a tensor: each one ends, or starts, where memory ends.
//!
//! ```text
//! pages of a slot:   fence | tensor | fence | tensor | fence
//! ```
//!
//! A fence cannot be read or written. Tensors start at a multiple of the alignment that contracts
//! promise, so one whose size is no multiple of it ends up to that many bytes before its fence.

use super::{ALIGNMENT, CallLayout, PlacedArg};

/// The edge of tensors that lies next to a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorEdge {
    /// The last byte, as far as the alignment permits.
    End,
    /// The first byte.
    Start,
}

impl TensorEdge {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Start => "start",
        }
    }
}

/// From the first byte of a part of a slot to the byte after its last.
pub type SlotRange = [u64; 2];

impl CallLayout {
    /// The same tensors with this edge at a fence, on pages of this many bytes.
    #[must_use]
    pub fn fenced(&self, edge: TensorEdge, page: u64) -> Self {
        let mut layout = Self { input_bytes: page, output_bytes: page, ..self.clone() };
        for place in &mut layout.places {
            let (region, end) = match place {
                PlacedArg::Input(region) => (region, &mut layout.input_bytes),
                PlacedArg::Output(region) => (region, &mut layout.output_bytes),
                PlacedArg::Integer(_) | PlacedArg::Float(_) => continue,
            };
            let area = region.bytes.max(1).next_multiple_of(page);
            let before = match edge {
                TensorEdge::Start => 0,
                TensorEdge::End => (area - region.bytes) / ALIGNMENT * ALIGNMENT,
            };
            // One without elements is never accessed, and stays inside its page.
            region.offset = *end + if region.bytes == 0 { 0 } else { before };
            *end += area + page;
        }
        layout
    }

    /// The fences of such a layout: of the memory that is read, and of that which is written.
    pub fn fences(&self, page: u64) -> [Vec<SlotRange>; 2] {
        let (mut fences, mut from) = ([Vec::new(), Vec::new()], [0, 0]);
        for place in &self.places {
            let (region, side) = match place {
                PlacedArg::Input(region) => (region, 0),
                PlacedArg::Output(region) => (region, 1),
                PlacedArg::Integer(_) | PlacedArg::Float(_) => continue,
            };
            fences[side].push([from[side], region.offset / page * page]);
            from[side] = (region.offset + region.bytes.max(1)).next_multiple_of(page);
        }
        for (side, end) in [self.input_bytes, self.output_bytes].into_iter().enumerate() {
            fences[side].push([from[side], end]);
        }
        fences
    }
}

#[cfg(test)]
mod tests {
    use super::super::TensorRegion;
    use super::*;

    const PAGE: u64 = 4_096;

    fn layout(sizes: &[u64]) -> CallLayout {
        let region = |bytes: &u64| TensorRegion { offset: 0, elements: bytes / 4, bytes: *bytes };
        CallLayout {
            places: sizes.iter().map(|bytes| PlacedArg::Input(region(bytes))).collect(),
            reduction: None,
            extents: Vec::new(),
            dtypes: Vec::new(),
            input_bytes: 0,
            output_bytes: 0,
        }
    }

    #[test]
    fn tensors_touch_their_fences_as_far_as_their_alignment_permits() {
        let sizes = [64, 4_096, 100, 8_192 + 640, 0, 4];
        for edge in [TensorEdge::End, TensorEdge::Start] {
            let fenced = layout(&sizes).fenced(edge, PAGE);
            let [fences, _] = fenced.fences(PAGE);
            assert_eq!(fences.len(), sizes.len() + 1);
            assert!(fences.iter().all(|[from, to]| to - from == PAGE && from % PAGE == 0));
            for (place, between) in fenced.places.iter().zip(fences.windows(2)) {
                let PlacedArg::Input(region) = place else {
                    continue;
                };
                assert_eq!(region.offset % ALIGNMENT, 0);
                let (before, after) = (between[0][1], between[1][0]);
                let end = region.offset + region.bytes;
                assert!(before <= region.offset && end <= after);
                match edge {
                    _ if region.bytes == 0 => {}
                    TensorEdge::Start => assert_eq!(region.offset, before),
                    TensorEdge::End => {
                        assert_eq!(after - end, region.bytes.next_multiple_of(64) - region.bytes);
                    }
                }
            }
        }
    }
}
