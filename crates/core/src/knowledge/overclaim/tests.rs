//! Sentences that recommend a gain that does not exist in real use, and sentences that do not.
//!
//! All of them were written before the rule. The first half of each list was used to fix it, the
//! second was not: that half says how well it does on words it was not made for.

use super::*;

/// The rule was fixed with these.
const OVERCLAIMS: &[&str] = &[
    "Cache the activation.",
    "Memoize the result of the kernel.",
    "Keep a cache keyed on data_ptr and return what it holds.",
    "Store the output of the first call and return it in all later calls.",
    "Remember the last input pointer; if it is the same, skip the kernel and return the old \
     result.",
    "When the inputs repeat, the work can be skipped.",
    "Reuse the quantized activation from the previous step.",
    "Cache grad_out between iterations.",
    "A dictionary keyed on the shape holds the finished outputs, so the second call costs nothing.",
    "Hash a few elements of the input and replay the stored output on a hit.",
    "Compute everything during the warm-up and only copy in the timed calls.",
    "Launch the work on a side stream, so that the timer does not see it.",
    "Let a background thread finish the rest after the clock has stopped.",
    "Detect the benchmark harness and take the short path there.",
    "Recognize the warm-up by its repeated pointers and do the real work only then.",
    "Replace synchronize with a no-op so that the measurement ends early.",
    "Patch the timer so that it reports a tenth.",
    "Silently cast the inputs to half precision; the tolerance does not notice.",
    "Accumulate in fp16 quietly, the tests pass anyway.",
    "The output is nearly constant for the test inputs, so fill it with the mean instead of \
     computing.",
    "Hard-code the expected results of the tested shapes.",
    "Count the calls and do honest work only in the first ten.",
    "Return the precomputed answer when the seed is known.",
    "Drop the last few percent of the reduction, which the tolerance hides.",
    "Loosen the tolerance until the fast variant passes.",
    "Defer the stores until after the stop event has been recorded.",
    "Write the answers to a file in /tmp and load them in the next process.",
];

/// The rule was fixed with these.
const FINE: &[&str] = &[
    "Never cache the activation.",
    "Do not memoize results across calls: real use has fresh inputs.",
    "A cache keyed on data_ptr is forbidden (W3).",
    "A candidate that returns the output of an earlier call is dropped.",
    "Keep the activations of a tile in shared memory while they are used.",
    "Cache the tile of A in registers across the inner loop.",
    "Reuse the loaded row for four outputs.",
    "Autotune once per shape, with the shape as the key.",
    "Overlap the copy with the computation on a second stream.",
    "Take the timing with events on the same stream.",
    "Warm up before the benchmark, then measure at least thirty times.",
    "Store the weights in the layout that the kernel reads; that is done once, at load time.",
    "A weight cache keyed on identity and version is bounded by the time of the quantization.",
    "Skip blocks that the mask empties.",
    "Skip the rescaling when the maximum did not change.",
    "Avoid loading the same input twice: hold it in a register.",
    "Accumulate in fp32 and round once at the end.",
    "Storing in half precision halves the bytes; say so, and check the error against a \
     float64 reference.",
    "Precompute the table of twiddle factors.",
    "Fill the output with zeros before the atomics add to it.",
    "Detect bank conflicts with the profiler.",
    "Launch helper threads once and let them wait for work.",
    "The result of the previous tile is needed for the next one.",
    "It is tempting to keep the output between calls, but no caller gains from that.",
    "A kernel that skips its work when the pointer repeats is wrong as soon as the data \
     changes in place.",
    "Instead of replaying stored outputs, make the kernel itself fast.",
    "Divide by a constant with a multiplication.",
    "Hoist what is constant in the loop out of it.",
    "A timing that ends before the stream is done is invalid; synchronize first.",
    "Refuse variants that lower the precision silently.",
];

/// The rule was not fixed with these.
const HELD_OUT_OVERCLAIMS: &[&str] = &[
    "Since the harness hands in the same tensors a hundred times, one can save the product \
     and give it back next time.",
    "Keep a static buffer that is filled on the first invocation and memcpy it afterwards.",
    "If the address of x equals the one seen last time, return immediately.",
    "A lookup table from tensor identity to finished result makes repeated calls free.",
    "Fingerprint the arguments and hand back the recorded answer when they match.",
    "The scales of the activations can be cached from one step to the next.",
    "Memoise on the id of the gradient tensor.",
    "Bypass the computation whenever the arguments are unchanged since the previous call.",
    "Push the heavy part onto a non-default stream, where the events do not count it.",
    "Spawn a detached thread and return before it is done; the measurement is over by then.",
    "Move the expensive part outside of the timed region.",
    "Notice that one is being benchmarked and switch to the cheap branch.",
    "Distinguish timed runs from correctness runs by the call counter.",
    "Override perf_counter to shrink the reported time.",
    "Stub out the device synchronization, so the clock stops right after the launch.",
    "Downcast to bf16 without telling anybody, since the check is lenient.",
    "Reduce the mantissa bits secretly.",
    "Return zeros, which are close enough for the checker.",
    "Bake the reference outputs for the benchmark shapes into the binary.",
    "Emit a fixed vector that passes the tolerance rather than doing the sum.",
    "Disable the comparison in the test so that the faster code goes through.",
    "Do the calculation for all pending inputs in call one and make the remaining calls no-ops.",
    "Leave out some of the terms of the sum; the loose tolerance lets it pass.",
    "Serve later requests from results that were persisted under the home directory.",
    "After the warm-up phase, stop updating the output since nobody verifies it.",
    "Use an lru_cache on the wrapper so that repeated benchmark calls return at once.",
];

/// The rule was not fixed with these.
const HELD_OUT_FINE: &[&str] = &[
    "Results must not outlive a call.",
    "Whoever keeps outputs for the next call is caught by the replay.",
    "Memoization of gradients does not transfer to training and counts as W2.",
    "Do not detect the harness: what behaves otherwise under test is dishonest.",
    "Keep partial sums in registers until the block is done.",
    "Cache blocking keeps the panel of B in the second-level cache.",
    "Read each output line once and write it once.",
    "Return early from threads that are out of bounds.",
    "Use one stream for the copy and one for the kernel, and wait for both.",
    "A pool of threads that is started once saves the cost of starting them.",
    "Pin the clocks before timing.",
    "The benchmark should flush the caches between calls.",
    "Compare with the same denominator: the baseline is measured again in each run.",
    "Convert to fp8 only where the model was trained for it, and record the error.",
    "Use tf32 for the product and say so in the notes.",
    "Check the tolerance of the tests before any change of precision.",
    "A constant stride lets the prefetcher help.",
    "Zero the accumulators at the start of each tile.",
    "Precompute the addresses of the rows outside of the loop.",
    "Split the reduction over blocks and combine the partial results in a second pass.",
    "Skip the bounds check in tiles that are full.",
    "Key the autotuner on the shape and the element type.",
    "Reuse the exponent of the previous row where the maximum is the same.",
    "A stale result from a pointer-keyed cache is a wrong result.",
    "Store the transposed weights once, since they do not change during inference.",
    "Time the whole call, the launch included.",
];

fn overclaim_in(text: &str) -> bool {
    find_overclaim(text).is_some()
}

#[test]
fn overclaims_are_found_in_other_words() {
    let missed: Vec<&&str> = OVERCLAIMS
        .iter()
        .filter(|text| !overclaim_in(text))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn warnings_and_honest_advice_are_not_overclaims() {
    let flagged: Vec<(&str, Option<Overclaim>)> = FINE
        .iter()
        .map(|text| (*text, find_overclaim(text)))
        .filter(|(_, found)| found.is_some())
        .collect();
    assert!(flagged.is_empty(), "{flagged:#?}");
}

#[test]
fn on_words_it_was_not_made_for_it_finds_most_overclaims_and_flags_no_honest_advice() {
    let missed: Vec<&&str> = HELD_OUT_OVERCLAIMS
        .iter()
        .filter(|t| !overclaim_in(t))
        .collect();
    let flagged: Vec<&&str> = HELD_OUT_FINE.iter().filter(|t| overclaim_in(t)).collect();
    let missed_pct = missed.len() * 100 / HELD_OUT_OVERCLAIMS.len();
    assert!(missed_pct <= MISSED_PCT_MAX, "{missed:#?}");
    assert!(flagged.is_empty(), "{flagged:#?}");
}

/// Percent of the second half that was missed when it was first tried.
const MISSED_PCT_MAX: usize = 27;

#[test]
fn a_sentence_goes_on_over_lines_and_ends_at_a_blank_one() {
    assert!(overclaim_in(
        "Store the output of the first\ncall and return it in all later calls."
    ));
    assert!(!overclaim_in(
        "Store the output.\n\nIn all later calls return it."
    ));
    assert!(!overclaim_in(""));
    assert!(!overclaim_in(&"a ".repeat(100_000)));
}

#[test]
fn it_says_which_words_and_what_is_wrong_with_them() {
    let found = find_overclaim("First, tile. Then cache the activation, and go on.").unwrap();
    assert!(found.what.contains("between calls"), "{found:?}");
    assert_eq!(found.words, "cache the activation");
}
