//! Whether a text overclaims: recommends a gain that does not exist in real use.
//!
//! A practice is recognized by words of several classes that are close to each other in a sentence,
//! such as one for keeping, one for a result and one for another call. A sentence that warns of the
//! practice is fine: it contains a word of warning, or a negation before the verb. This is a hint
//! for the reviewer of an entry, not a proof: the referee sees what a kernel really does.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Maximum distance, in words, between the classes of a practice.
const WINDOW: usize = 26;
/// Maximum distance, in words, between a negation and what it negates.
const NEGATION_WINDOW: usize = 6;
/// Maximum number of words of a sentence to look at.
const SENTENCE_WORDS_MAX: usize = 400;
/// Maximum length of a quote, in characters.
const QUOTE_CHARS_MAX: usize = 120;

/// An overclaim, with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Overclaim {
    /// What is wrong with it.
    pub what: &'static str,
    /// The words.
    pub words: String,
}

type ClassMask = u64;

/// Each class of words by its bit. A word that ends with `*` stands for all words that start so.
macro_rules! classes {
    ($($name:ident = $words:expr;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum WordClass { $($name),+ }
        $(const $name: ClassMask = 1 << (WordClass::$name as u32);)+
        const WORDS: &[(ClassMask, &str)] = &[$(($name, $words)),+];
    };
}

classes! {
    CACHE = "cach* memoi* lru_cache replay* remember* stash*";
    MEMOIZE = "memoi*";
    KEEP = "stor* save saves saved saving keep keeps keeping kept retain* persist* record recorded \
            records reus* hold holds held return returns returned returning serve serves served \
            copy copies fill filled memcpy hand_back hands_back give_back";
    RESULT = "result results output outputs answer answers activation activations grad_out \
              gradient gradients";
    ACTIVATION = "activation activations grad_out gradient gradients";
    OTHER_CALL = "later_call* next_call* previous_call* earlier_call* last_call first_call \
                  second_call* other_call* repeated_call* remaining_call* across_call* \
                  between_call* an_earlier_call between_iterations previous_iteration \
                  previous_step next_step between_steps across_steps previous_run next_run \
                  between_runs across_runs next_process later_process* first_invocation \
                  later_invocation* next_time second_time all_later timed_call* timed_run*";
    KEYED = "keyed cache_key* dictionary dict lookup_table";
    POINTER = "pointer pointers data_ptr address addresses identity object_id tensor_id id";
    SHAPE = "shape shapes";
    HASH = "hash hashes hashing fingerprint* checksum*";
    SKIP = "skip* bypass* omit* elid* avoid* no_op no_ops noop* short_circuit* do_nothing \
            return_early return_immediately return_at_once";
    WORK = "work comput* recomput* kernel launch* calculat* call calls";
    REPEAT = "repeat repeats repeated same_input* same_pointer* same_tensor* same_argument* \
              same_address* unchanged identical seen_before already_seen is_the_same are_the_same \
              inputs_match arguments_match";
    OLD = "stored saved old previous earlier cached recorded remembered precomputed";
    GIVE = "return returns returned serve serves copy copies memcpy replay* hand_back";
    ON_CHIP = "register* shared_memory smem lds l1 l2 tile tiles sram scratchpad on_chip loop row \
               rows block blocks panel level weight weights parameter parameters";
    WEIGHT = "weight weights parameter parameters handle handles autotun* plan";
    STREAM = "side_stream* another_stream second_stream other_stream default_stream \
              separate_stream background_thread* helper_thread* worker_thread* detached_thread* \
              background_process";
    TIMER = "timer timers clock clocks stop_event stopwatch events measurement timing benchmark \
             measured timed";
    EVADE = "not_see not_count unseen escape* hide hides hidden has_stopped is_over ends_early \
             before_it_is_done after_the_clock after_the_stop after_the_timer";
    DEFER = "defer* postpone* push pushes move moves moving delay* hide hiding finish* shift*";
    OUTSIDE = "after_the_stop after_the_clock after_the_timer until_after_the_stop timed_region \
               timed_section timed_part outside_of_the_timing outside_the_timing";
    TAMPER = "patch patches patching overrid* rebind* stub stubs monkey* fake fakes replace \
              replaces replacing shadow*";
    CLOCK = "timer timers perf_counter elapsed_time clock_gettime the_clock";
    NOTHING = "no_op no_ops noop* stub stubs neutrali* does_nothing";
    SYNC = "synchroniz* synchronis* sync block_until_ready";
    DETECT = "detect* recogni* sniff* notice notices distinguish* spot spots identif* infer* \
              guess*";
    HARNESS = "harness benchmark benchmarks benchmarked warm_up warmup timed_run* timed_call* \
               being_timed being_measured test_run* grader referee checker evaluator";
    OTHERWISE = "path branch switch* real_work cheap* shorter shortcut differently otherwise \
                 only_then skip* variant";
    COUNT = "count counts counting counter";
    HONEST = "honest* only_in_the_first after_the_first from_then_on real_work";
    CALLS = "call calls invocation invocations";
    LOWER = "cast casts casting downcast* convert* lower lowers lowering reduc* drop drops switch* \
             truncat* round rounds accumulat* comput*";
    FORMAT = "half fp16 float16 bf16 bfloat16 fp8 tf32 precision mantissa bits";
    SILENT = "silent* quietly secretly unnoticed undetected without_telling without_saying \
              not_notice nobody_notices lenient pass_anyway passes_anyway";
    PRODUCE = "fill fills filled return returns emit* write writes produc* memset output outputs";
    CONSTANT = "constant constants mean average zeros zeroes fixed";
    UNCOMPUTED = "instead_of_comput* rather_than without_comput* test_inputs tolerance checker \
                  close_enough";
    BAKE = "hard_cod* hardcod* bake bakes baked precomput* embed*";
    EXPECTED = "answer answers expected_result* expected_output* expected_value* \
                reference_output* reference_result*";
    WARM = "warm_up warmup";
    ONLY_COPY = "only_copy only_copies only_return* copy_in do_nothing real_work";
    WEAKEN = "loosen* weaken* relax* widen* disabl* patch* edit* turn_off switch_off";
    TESTS = "tolerance tolerances test tests checker comparator comparison assert* grader harness";
    LEAVE_OUT = "drop drops ignor* leave_out truncat* omit* skip skips";
    PART = "last_few terms percent tail some_of part_of";
    LAX = "tolerance tolerances lenient tests_pass nobody_notices";
    WRITE = "write writes stor* save saves saved persist* dump dumps";
    NEXT_PROCESS = "next_process next_run later_run* tmp reload* load_them";
    NEGATION = "never not no nobody none cannot nor neither avoid* instead_of rather_than without \
                dont don";
    WARNING = "forbid* w2 w3 cheat* dishonest* tempt* is_dropped are_dropped refus* reject* \
               disqualif* is_caught are_caught is_flagged invalid illegal is_wrong are_wrong \
               stale beware not_transfer no_gain not_a_gain unsound wrong_result* must_not may_not \
               not_allowed";
}

/// A practice: words of each class, and none of the excluded ones anywhere in the sentence.
struct OverclaimPattern {
    all: &'static [ClassMask],
    none: ClassMask,
    what: &'static str,
}

const KEPT: &str = "results are kept between calls (W2 or W3)";
const UNTIMED: &str = "work is hidden from the timer";
const TIMES: &str = "the clock is tampered with";
const KNOWN: &str = "it behaves differently when it is tested or timed";
const SILENTLY: &str = "results silently become less accurate";
const NOT_DONE: &str = "the output is not computed";
const LAXER: &str = "the tests are weakened";

const fn practice(
    all: &'static [ClassMask],
    none: ClassMask,
    what: &'static str,
) -> OverclaimPattern {
    OverclaimPattern { all, none, what }
}

const PRACTICES: &[OverclaimPattern] = &[
    practice(&[CACHE, ACTIVATION], ON_CHIP, KEPT),
    practice(&[KEEP, ACTIVATION, OTHER_CALL], ON_CHIP, KEPT),
    practice(&[MEMOIZE, RESULT], ON_CHIP, KEPT),
    practice(&[MEMOIZE, POINTER], WEIGHT, KEPT),
    practice(&[CACHE, RESULT, OTHER_CALL], WEIGHT, KEPT),
    practice(&[KEEP, RESULT, OTHER_CALL], WEIGHT, KEPT),
    practice(&[KEYED, POINTER], WEIGHT, KEPT),
    practice(&[KEYED, SHAPE, RESULT], WEIGHT, KEPT),
    practice(&[KEEP, HASH, RESULT], WEIGHT, KEPT),
    practice(&[CACHE, HASH, RESULT], WEIGHT, KEPT),
    practice(&[SKIP, WORK, REPEAT], ON_CHIP, KEPT),
    practice(&[GIVE, OLD, RESULT], ON_CHIP, KEPT),
    practice(&[WRITE, RESULT, NEXT_PROCESS], WEIGHT, KEPT),
    practice(&[WARM, ONLY_COPY], 0, KEPT),
    practice(&[STREAM, TIMER, EVADE], 0, UNTIMED),
    practice(&[DEFER, OUTSIDE], 0, UNTIMED),
    practice(&[TAMPER, CLOCK], 0, TIMES),
    practice(&[NOTHING, SYNC], 0, TIMES),
    practice(&[DETECT, HARNESS, OTHERWISE], 0, KNOWN),
    practice(&[COUNT, CALLS, HONEST], 0, KNOWN),
    practice(&[LOWER, FORMAT, SILENT], 0, SILENTLY),
    practice(&[LEAVE_OUT, PART, LAX], 0, SILENTLY),
    practice(&[PRODUCE, CONSTANT, UNCOMPUTED], 0, NOT_DONE),
    practice(&[BAKE, EXPECTED], 0, NOT_DONE),
    practice(&[WEAKEN, TESTS], 0, LAXER),
];

/// A word or several, and the class they belong to.
struct ClassTerm {
    words: Vec<(&'static str, WordEnd)>,
    class: ClassMask,
}

#[derive(Clone, Copy, PartialEq)]
enum WordEnd {
    Whole,
    Open,
}

/// Words that may start a term, by their first two letters.
static TERMS: LazyLock<HashMap<[u8; 2], Vec<ClassTerm>>> = LazyLock::new(|| {
    let mut terms: HashMap<[u8; 2], Vec<ClassTerm>> = HashMap::new();
    for (class, list) in WORDS {
        for term in list.split_whitespace() {
            // A name with an underscore in it is one word, as it is in a text.
            let whole = NAMES.contains(&term);
            let parts = if whole {
                vec![term]
            } else {
                term.split('_').collect()
            };
            let word = |part: &'static str| match part.strip_suffix('*') {
                Some(open) => (open, WordEnd::Open),
                None => (part, WordEnd::Whole),
            };
            let words: Vec<(&str, WordEnd)> = parts.into_iter().map(word).collect();
            let class = *class;
            let begins = first_two(words[0].0);
            terms
                .entry(begins)
                .or_default()
                .push(ClassTerm { words, class });
        }
    }
    terms
});

/// Names that are written with an underscore.
const NAMES: &[&str] = &[
    "grad_out",
    "data_ptr",
    "lru_cache",
    "perf_counter",
    "elapsed_time",
    "clock_gettime",
    "block_until_ready",
];

fn first_two(word: &str) -> [u8; 2] {
    let mut bytes = word.bytes();
    [bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)]
}

/// The first overclaim in a text.
pub(super) fn find_overclaim(text: &str) -> Option<Overclaim> {
    let lower = text.to_ascii_lowercase();
    sentences(&lower).find_map(|sentence| in_sentence(&lower, text, sentence))
}

/// Where sentences end: at a full stop, a blank line or the next list item.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= text.len() {
            return None;
        }
        let bytes = text.as_bytes();
        let ends = |at: usize| match bytes[at] {
            b'.' | b'!' | b'?' => bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace),
            b'\n' => {
                let next = text[at + 1..]
                    .trim_start_matches([' ', '\t'])
                    .bytes()
                    .next();
                matches!(next, None | Some(b'\n' | b'-' | b'*' | b'|' | b'#' | b'`'))
            }
            _ => false,
        };
        let end = (from..text.len()).find(|at| ends(*at));
        let end = end.map_or(text.len(), |at| at + 1);
        let sentence = from..end;
        from = end;
        Some(sentence)
    })
}

/// A word of a sentence, or a mark at which a clause ends.
struct SentenceWord<'a> {
    text: &'a str,
    at: usize,
}

fn words(text: &str, sentence: Range<usize>) -> Vec<SentenceWord<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut begun = None;
    let part = &text[sentence.clone()];
    for (at, c) in part.char_indices().chain([(part.len(), ' ')]) {
        if is_word(c) {
            begun.get_or_insert(at);
            continue;
        }
        if let Some(from) = begun.take() {
            words.push(SentenceWord {
                text: &part[from..at],
                at: sentence.start + from,
            });
        }
        if matches!(c, ',' | ';' | ':') {
            words.push(SentenceWord {
                text: &part[at..=at],
                at: sentence.start + at,
            });
        }
        if words.len() >= SENTENCE_WORDS_MAX {
            break;
        }
    }
    words
}

/// Words of a class: where, how many, which.
#[derive(Clone, Copy)]
struct ClassMatch {
    word: usize,
    n_words: usize,
    class: ClassMask,
}

fn hits(words: &[SentenceWord<'_>]) -> Vec<ClassMatch> {
    let mut hits = Vec::new();
    for (number, word) in words.iter().enumerate() {
        let Some(terms) = TERMS.get(&first_two(word.text)) else {
            continue;
        };
        for term in terms {
            let is = |(place, (want, end)): (usize, &(&str, WordEnd))| {
                let own = words.get(number + place).map(|word| word.text);
                own.is_some_and(|own| match end {
                    WordEnd::Whole => own == *want,
                    WordEnd::Open => own.starts_with(want),
                })
            };
            if term.words.iter().enumerate().all(is) {
                hits.push(ClassMatch {
                    word: number,
                    n_words: term.words.len(),
                    class: term.class,
                });
            }
        }
    }
    hits
}

fn in_sentence(lower: &str, text: &str, sentence: Range<usize>) -> Option<Overclaim> {
    let words = words(lower, sentence);
    let hits = hits(&words);
    let classes = hits.iter().fold(0, |all, hit| all | hit.class);
    if classes & WARNING != 0 {
        return None;
    }
    let may = |practice: &&OverclaimPattern| {
        practice.all.iter().all(|class| classes & class != 0) && classes & practice.none == 0
    };
    for practice in PRACTICES.iter().filter(may) {
        let anchors = hits.iter().filter(|hit| hit.class == practice.all[0]);
        for anchor in anchors.filter(|anchor| !is_negated(&words, &hits, anchor)) {
            if let Some(span) = together(&hits, anchor, &practice.all[1..]) {
                let (first, last) = (&words[span.start], &words[span.end - 1]);
                let quote = &text[first.at..last.at + last.text.len()];
                return Some(Overclaim {
                    what: practice.what,
                    words: quote.chars().take(QUOTE_CHARS_MAX).collect(),
                });
            }
        }
    }
    None
}

/// Whether a negation precedes the verb in the same clause.
fn is_negated(words: &[SentenceWord<'_>], hits: &[ClassMatch], anchor: &ClassMatch) -> bool {
    let before = anchor.word.saturating_sub(NEGATION_WINDOW)..anchor.word;
    let mut negations = hits.iter().filter(|hit| hit.class == NEGATION);
    negations.any(|hit| {
        let between = hit.word..anchor.word;
        before.contains(&hit.word)
            && !words[between]
                .iter()
                .any(|word| matches!(word.text, "," | ";" | ":"))
    })
}

/// The words from the first to the last of all classes, each at the nearest place to the first.
fn together(
    hits: &[ClassMatch],
    anchor: &ClassMatch,
    classes: &[ClassMask],
) -> Option<Range<usize>> {
    let mut used = vec![anchor.word];
    let mut span = anchor.word..anchor.word + anchor.n_words;
    for class in classes {
        let near = hits
            .iter()
            .filter(|hit| hit.class == *class && !used.contains(&hit.word));
        let nearest = near.min_by_key(|hit| hit.word.abs_diff(anchor.word))?;
        if nearest.word.abs_diff(anchor.word) > WINDOW {
            return None;
        }
        used.push(nearest.word);
        span = span.start.min(nearest.word)..span.end.max(nearest.word + nearest.n_words);
    }
    Some(span)
}

#[cfg(test)]
mod tests;
