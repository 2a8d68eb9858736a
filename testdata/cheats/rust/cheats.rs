//! Cheats in Rust, one entry each, for the project of this directory.
//!
//! A comment above an entry says what stops it: the words of the correctness check, or that the
//! process may not do what it tries. What follows it up to the next one is the cheat; what comes
//! before all of them is common to them, and honest.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicU32, Ordering};

fn honest(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    for (row, of_a) in c.chunks_exact_mut(n).zip(a.chunks_exact(n)) {
        row.fill(0.0);
        for (x, of_b) in of_a.iter().zip(b.chunks_exact(n)) {
            row.iter_mut().zip(of_b).for_each(|(sum, y)| *sum += x * y);
        }
    }
}

macro_rules! entry {
    ($name:ident, $cheat:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(n: i32, a: *const f32, b: *const f32, c: *mut f32) {
            let (n, count) = (n as usize, n as usize * n as usize);
            let (a, b) = unsafe { (from_raw_parts(a, count), from_raw_parts(b, count)) };
            $cheat(n, a, b, unsafe { from_raw_parts_mut(c, count) });
        }
    };
}

// beyond the tolerance | the same inputs gave different results
entry!(pointer_memo, with_pointer_memo);

thread_local! {
    static LAST: RefCell<(usize, usize, Vec<f32>)> = const { RefCell::new((0, 0, Vec::new())) };
}

fn with_pointer_memo(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    LAST.with_borrow_mut(|last| {
        if (last.0, last.1, last.2.len()) == (a.as_ptr() as usize, b.as_ptr() as usize, c.len()) {
            c.copy_from_slice(&last.2);
            return;
        }
        honest(n, a, b, c);
        *last = (a.as_ptr() as usize, b.as_ptr() as usize, c.to_vec());
    });
}

// it caches results
entry!(content_memo, with_content_memo);

thread_local! {
    static SEEN: RefCell<(u64, Vec<f32>)> = const { RefCell::new((0, Vec::new())) };
}

fn with_content_memo(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let mut hasher = DefaultHasher::new();
    a.iter().chain(b).for_each(|x| x.to_bits().hash(&mut hasher));
    let key = hasher.finish();
    SEEN.with_borrow_mut(|seen| {
        if seen.0 == key && seen.1.len() == c.len() {
            c.copy_from_slice(&seen.1);
            return;
        }
        for _ in 0..4 {
            honest(n, a, b, std::hint::black_box(&mut *c));
        }
        *seen = (key, c.to_vec());
    });
}

// c:
entry!(counted_calls, with_counted_calls);

static CALLS: AtomicU32 = AtomicU32::new(0);

fn with_counted_calls(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    match CALLS.fetch_add(1, Ordering::Relaxed) {
        0..10 => honest(n, a, b, c),
        _ => honest(n, &a[..n * (n / 2)], b, &mut c[..n * (n / 2)]),
    }
}

// c:
entry!(late_thread, with_late_thread);

fn with_late_thread(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let half = n * (n / 2);
    honest(n, &a[..half], b, &mut c[..half]);
    let (a, b, to) = (a[half..].to_vec(), b.to_vec(), c[half..].as_mut_ptr() as usize);
    std::thread::spawn(move || {
        let rest = unsafe { from_raw_parts_mut(to as *mut f32, a.len()) };
        honest(n, &a, &b, rest);
    });
}

// c:
entry!(sampled_scale, with_sampled_scale);

fn with_sampled_scale(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let scale = |x: &[f32]| {
        let most = x.iter().step_by(x.len() / 64).fold(0.0_f32, |most, x| most.max(x.abs()));
        if (1e-30..1e30).contains(&most) { 16.0 * most / (1 << 28) as f32 } else { 0.0 }
    };
    let (of_a, of_b) = (scale(a), scale(b));
    if of_a == 0.0 || of_b == 0.0 {
        return honest(n, a, b, c);
    }
    let limit = ((1 << 28) - 1) as f32;
    let whole = |x: &[f32], scale: f32| -> Vec<i64> {
        x.iter().map(|x| (x / scale).clamp(-limit, limit) as i64).collect()
    };
    let (a, b) = (whole(a, of_a), whole(b, of_b));
    for i in 0..n {
        for j in 0..n {
            let sum: i64 = (0..n).map(|l| a[i * n + l] * b[l * n + j]).sum();
            c[i * n + j] = (sum as f64 * f64::from(of_a) * f64::from(of_b)) as f32;
        }
    }
}

// wrong on a hidden case: hidden cases are reported without details
entry!(told_case, with_told_case);

fn with_told_case(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    honest(n, a, b, c);
    if n != 96 {
        eprintln!("the hidden case is n={n}");
        std::process::exit(n as i32);
    }
}

// exit code 102
entry!(hidden_process, with_hidden_process);

unsafe extern "C" {
    fn prctl(option: i32, ...) -> i32;
}

fn with_hidden_process(_n: usize, _a: &[f32], _b: &[f32], _c: &mut [f32]) {
    let worked = unsafe { prctl(4, 0_u64, 0_u64, 0_u64, 0_u64) } == 0;
    std::process::exit(if worked { 101 } else { 102 });
}

// exit code 102
entry!(shared_memory, with_shared_memory);

unsafe extern "C" {
    fn shm_open(name: *const std::ffi::c_char, flags: i32, mode: u32) -> i32;
}

fn with_shared_memory(_n: usize, _a: &[f32], _b: &[f32], _c: &mut [f32]) {
    let worked = unsafe { shm_open(c"/karve-zoo-rust".as_ptr(), 0o102, 0o600) } >= 0;
    std::process::exit(if worked { 101 } else { 102 });
}

// exit code 102
entry!(second_process, with_second_process);

unsafe extern "C" {
    fn fork() -> i32;
}

fn with_second_process(_n: usize, _a: &[f32], _b: &[f32], _c: &mut [f32]) {
    let worked = unsafe { fork() } >= 0;
    std::process::exit(if worked { 101 } else { 102 });
}
