//! The results of a call: checked against the contract, and copied to karve's memory.

use crate::api::{Attempt, HeldBuffer, PyRef, refused};
use crate::arguments::{CallPlan, NumpyCalls, PlannedTensor, ResultTarget};
use crate::cuda::Gpu;
use crate::torch::TorchCalls;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// What results are checked with.
pub(crate) struct ResultCheck<'a> {
    pub(crate) plan: &'a CallPlan,
    pub(crate) numpy: &'a NumpyCalls,
    pub(crate) torch: Option<&'a TorchCalls>,
    /// The device that results and karve's memory are on, if not the host.
    pub(crate) gpu: Option<&'a Gpu>,
    /// The memory of the results of this call, and of those before that are still alive.
    pub(crate) spans: RefCell<VecDeque<Vec<ResultSpan>>>,
    /// How many calls before this one have results that are still alive.
    pub(crate) alive: usize,
    /// The memory of the inputs, if that is on the host.
    pub(crate) inputs: ResultSpan,
    /// Whether a result was an input, part of one, or in the memory of another result.
    pub(crate) is_alias: Cell<bool>,
}

/// From the first to the last byte of a result.
pub(crate) type ResultSpan = [usize; 2];

impl ResultCheck<'_> {
    /// Writes the results of a call to karve's memory, if they match the contract.
    pub(crate) fn put(&self, targets: &[ResultTarget], result: &PyRef) -> Attempt<()> {
        {
            let mut spans = self.spans.borrow_mut();
            spans.push_front(Vec::new());
            spans.truncate(self.alive + 1);
        }
        let several = result.items()?;
        if let ([target], None) = (targets, &several) {
            return self.put_one(target, result);
        }
        let results = match several {
            Some(results) => results,
            None if result.is_none() => Vec::new(),
            None => vec![result.clone()],
        };
        if targets.is_empty() && !results.is_empty() {
            return refused("returned");
        }
        if results.len() != targets.len() {
            return refused(format!("results\t{}\t{}", results.len(), targets.len()));
        }
        targets.iter().zip(&results).try_for_each(|(target, one)| self.put_one(target, one))
    }

    fn put_one(&self, target: &ResultTarget, result: &PyRef) -> Attempt<()> {
        let wanted = self.plan.tensor(target.index)?;
        let kind = result.kind()?;
        if kind.is(&self.numpy.ndarray) && self.gpu.is_none() {
            return self.put_array(target, wanted, result);
        }
        match (self.torch, &wanted.of_torch) {
            (Some(torch), Some(_)) if kind.is(&torch.tensor) => {
                self.put_tensor(target, wanted, result)
            }
            _ => {
                let name = kind.attribute(c"__name__").ok().and_then(|name| name.text());
                crate::api::clear_error();
                refused(format!("type\t{}", name.unwrap_or_default()))
            }
        }
    }

    /// Copies a tensor of PyTorch.
    fn put_tensor(
        &self,
        target: &ResultTarget,
        wanted: &PlannedTensor,
        result: &PyRef,
    ) -> Attempt<()> {
        let (Some(torch), Some(element)) = (self.torch, &wanted.of_torch) else {
            return refused("element");
        };
        let found = result.attribute(c"dtype")?;
        if !found.is(&element.object) {
            check_shape(&result.attribute(c"shape")?.extents()?, &wanted.shape)?;
            let found = found.text().unwrap_or_default();
            return refused(format!("elements\t{found}\ttorch.{}", wanted.element.3));
        }
        let Some(shown) = torch.shown(result, element) else {
            check_shape(&result.attribute(c"shape")?.extents()?, &wanted.shape)?;
            return torch.copy(&wanted.home(target.address, torch)?, result);
        };
        check_shape(&shown.shape, &wanted.shape)?;
        let item = isize::from(wanted.element.1);
        self.note(shown.data, &shown.shape, &shown.strides, item)?;
        let Some(gpu) = self.gpu else {
            // SAFETY: shape and type are those of the target, whose memory is mapped.
            unsafe { copy(target.address, shown.data, &shown.shape, &shown.strides, item) };
            return Ok(());
        };
        match dense_bytes(&shown.shape, &shown.strides, item) {
            Some(bytes) => {
                Ok(gpu.copy(target.address as u64, shown.data as u64, bytes as u64)?)
            }
            None => torch.copy(&wanted.home(target.address, torch)?, result),
        }
    }

    /// Copies an array of NumPy.
    fn put_array(
        &self,
        target: &ResultTarget,
        wanted: &PlannedTensor,
        result: &PyRef,
    ) -> Attempt<()> {
        let (_, _, of_numpy, of_torch) = wanted.element;
        let Some(found) = result.buffer() else {
            return refused(format!("elements\tanother\t{of_numpy}"));
        };
        check_shape(found.shape(), &wanted.shape)?;
        let element = element_name(&found);
        if wanted.of_torch.is_some() && of_numpy != of_torch {
            // PyTorch has types that arrays lack.
            return refused(format!(
                "elements\t{}\ttorch.{of_torch}",
                element.unwrap_or("another")
            ));
        }
        if element != Some(of_numpy) {
            return refused(format!("elements\t{}\t{of_numpy}", element.unwrap_or("another")));
        }
        self.note(found.data(), found.shape(), found.strides(), found.item_bytes())?;
        // SAFETY: shape and type are those of the target, whose memory is mapped.
        unsafe {
            copy(target.address, found.data(), found.shape(), found.strides(), found.item_bytes());
        }
        Ok(())
    }

    /// Refuses memory of an earlier result, which a caller may still use.
    fn note(
        &self,
        data: *const u8,
        shape: &[isize],
        strides: &[isize],
        item: isize,
    ) -> Attempt<()> {
        if shape.contains(&0) {
            return Ok(());
        }
        let [mut first, mut last] = [data as usize as isize; 2];
        for (n, stride) in shape.iter().zip(strides) {
            let far = (n - 1) * stride;
            (first, last) = (first + far.min(0), last + far.max(0));
        }
        let span = [first as usize, (last + item - 1) as usize];
        let overlaps = |other: &ResultSpan| span[0] <= other[1] && other[0] <= span[1];
        if overlaps(&self.inputs) {
            self.is_alias.set(true);
            return Ok(());
        }
        let mut spans = self.spans.borrow_mut();
        if spans.iter().skip(1).flatten().any(overlaps) {
            return refused("reused");
        }
        let is_repeated = shape.iter().zip(strides).any(|(n, stride)| *n > 1 && *stride == 0);
        if let Some(now) = spans.front_mut() {
            let is_alias = is_repeated || now.iter().any(overlaps);
            self.is_alias.set(self.is_alias.get() || is_alias);
            now.push(span);
        }
        Ok(())
    }
}

fn check_shape(found: &[isize], wanted: &[isize]) -> Attempt<()> {
    if found.len() != wanted.len() {
        return refused(format!("rank\t{}\t{}", found.len(), wanted.len()));
    }
    match found.iter().zip(wanted).position(|(one, other)| one != other) {
        None => Ok(()),
        Some(at) if found[at] < wanted[at] => refused(format!("extent\t{at}\tsmall")),
        Some(at) => refused(format!("extent\t{at}\tlarge")),
    }
}

/// NumPy's name for the elements of a buffer, if they are numbers of this host.
fn element_name(found: &HeldBuffer) -> Option<&'static str> {
    let [code] = found.format().strip_prefix(b"=").unwrap_or(found.format()) else {
        return None;
    };
    Some(match (code, found.item_bytes()) {
        (b'?', 1) => "bool",
        (b'e', 2) => "float16",
        (b'f', 4) => "float32",
        (b'd', 8) => "float64",
        (b'b', 1) => "int8",
        (b'h', 2) => "int16",
        (b'i' | b'l', 4) => "int32",
        (b'l' | b'q', 8) => "int64",
        (b'B', 1) => "uint8",
        (b'H', 2) => "uint16",
        (b'I' | b'L', 4) => "uint32",
        (b'L' | b'Q', 8) => "uint64",
        _ => return None,
    })
}

/// Copies all elements in their order.
unsafe fn copy(to: *mut u8, from: *const u8, shape: &[isize], strides: &[isize], item: isize) {
    if shape.contains(&0) {
        return;
    }
    unsafe {
        match dense_bytes(shape, strides, item) {
            Some(bytes) => std::ptr::copy(from, to, bytes),
            None => {
                copy_strided(to, from, shape, strides, item);
            }
        }
    }
}

/// The bytes of elements that lie next to each other in their order; nothing for others.
fn dense_bytes(shape: &[isize], strides: &[isize], item: isize) -> Option<usize> {
    let mut step = item;
    for (n, stride) in shape.iter().zip(strides).rev() {
        if *n != 1 && *stride != step {
            return None;
        }
        step *= n;
    }
    Some(step as usize)
}

/// Copies elements that are apart; returns the end of what was written.
unsafe fn copy_strided(
    mut to: *mut u8,
    from: *const u8,
    shape: &[isize],
    strides: &[isize],
    item: isize,
) -> *mut u8 {
    let ([n, inner @ ..], [stride, further @ ..]) = (shape, strides) else {
        return to;
    };
    for at in 0..*n {
        // SAFETY: the element or the row is inside the array, and the target has space for it.
        unsafe {
            let part = from.offset(at * stride);
            to = match (inner.is_empty(), item) {
                (false, _) => copy_strided(to, part, inner, further, item),
                (true, 4) => put::<u32>(to, part),
                (true, 8) => put::<u64>(to, part),
                (true, 2) => put::<u16>(to, part),
                (true, _) => put::<u8>(to, part),
            };
        }
    }
    to
}

unsafe fn put<T: Copy>(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: the caller says that both places have this size.
    unsafe {
        to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned());
        to.add(size_of::<T>())
    }
}
