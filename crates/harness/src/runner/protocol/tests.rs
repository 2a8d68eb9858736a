//! Messages, parsed back and garbled.

use super::*;
use proptest::prelude::*;

fn question() -> impl Strategy<Value = WorkerRequest> {
    let slots = prop::collection::vec((any::<u32>(), any::<u32>()), 0..50);
    prop_oneof![
        Just(WorkerRequest::Ping),
        (slots, any::<u64>(), any::<bool>()).prop_map(|(slots, spin_ns, stage)| {
            let slots = slots.into_iter().map(|(input, output)| CallSlot { input, output });
            let slots = slots.collect();
            match stage {
                true => WorkerRequest::Fill { slots, place: spin_ns },
                false => WorkerRequest::Batch {
                    slots,
                    extra: BatchExtra { spin_ns, cover_ns: spin_ns / 3, alive: spin_ns / 5 },
                },
            }
        }),
        ("[a-z/.]{0,40}", any::<u64>()).prop_map(|(path, bytes)| WorkerRequest::Hello(
            WorkerHello {
                path,
                entry: "f".into(),
                setup: Some("pack".into()),
                input_bytes: bytes,
                output_bytes: 1,
                tree: ReadableTree::default(),
                module: None,
                device: Some(DeviceHello {
                    handles: ["0a".into(), "ff".into()],
                    captures: true,
                    warms: false,
                }),
            }
        )),
        Just(WorkerRequest::Fetch),
        any::<(u64, u64)>().prop_map(|(from, to)| {
            WorkerRequest::Fence([vec![[from, to]; 2], vec![[to, from]; 3]])
        }),
        (any::<u64>(), prop::collection::vec(argument(), 0..30)).prop_map(|(stride, args)| {
            WorkerRequest::Setup(CallSetup {
                input_stride: stride,
                output_stride: 64,
                prepared_slots: stride as u32,
                args,
            })
        }),
        (any::<bool>(), any::<u64>()).prop_map(|(wide, seed)| WorkerRequest::Hello(WorkerHello {
            path: "kernel.py".into(),
            entry: "kernel_fn".into(),
            setup: None,
            input_bytes: 1,
            output_bytes: 1,
            tree: ReadableTree { root: "/t".into(), ..Default::default() },
            module: Some(ModuleOptions {
                device: wide.then(|| "cuda".into()),
                wide,
                alone: !wide,
                hidden: vec!["reference".into()],
                seed,
                compile: wide.then(|| "default".into()),
                finds_project: wide,
            }),
            device: None,
        })),
    ]
}

fn argument() -> impl Strategy<Value = WireArg> {
    let shape = prop::collection::vec(any::<u64>(), 0..9);
    let tensor = (any::<u64>(), shape, "[a-z0-9]{1,8}");
    let tensor =
        tensor.prop_map(|(offset, shape, dtype)| WireTensor { offset, shape, dtype }).boxed();
    prop_oneof![
        any::<i64>().prop_map(|value| WireArg::Integer { value }),
        any::<(u64, bool)>().prop_map(|(bits, single)| WireArg::Float { bits, single }),
        tensor.clone().prop_map(WireArg::Input),
        tensor.clone().prop_map(WireArg::Output),
        tensor.prop_map(WireArg::InOut),
    ]
}

proptest! {
    #[test]
    fn a_question_is_read_as_it_was_asked(asked in question(), nonce: u64) {
        prop_assert_eq!(WorkerRequest::parse(&asked.render(nonce)), Ok((nonce, asked)));
    }

    #[test]
    fn an_answer_is_read_as_it_was_given(ns: (u64, u64, u64), flags: u32, nonce: u64) {
        let (wall_ns, launch_ns, device_ns) = ns;
        let reported = WorkerReply::Finished(WorkerTiming { wall_ns, launch_ns, flags, device_ns });
        prop_assert_eq!(WorkerReply::parse(&reported.render(nonce), nonce), Ok(reported));
    }

    #[test]
    fn an_answer_to_another_question_is_none(nonce: u64, other: u64) {
        prop_assume!(nonce != other);
        prop_assert!(WorkerReply::parse(&WorkerReply::Done.render(nonce), other).is_err());
    }

    #[test]
    fn garbage_is_refused_and_never_a_finished_batch(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        nonce: u64,
    ) {
        // One in 2^64 would be right by chance.
        let parsed = WorkerReply::parse(&bytes, nonce);
        prop_assert!(!matches!(parsed, Ok(WorkerReply::Finished(_) | WorkerReply::Done)));
        let _ = WorkerRequest::parse(&bytes);
    }

    #[test]
    fn a_cut_or_longer_answer_is_refused(nonce: u64, cut in 0..37_usize, more in 1..20_usize) {
        let whole = WorkerReply::Finished(WorkerTiming::default()).render(nonce);
        prop_assert!(WorkerReply::parse(&whole[..cut], nonce).is_err());
        let mut longer = whole;
        longer.extend(vec![0; more]);
        prop_assert!(WorkerReply::parse(&longer, nonce).is_err());
    }
}
