//! Conduits alone, driven by polling: more connections than engines could be run for.
#![forbid(unsafe_code)]

use argonet_am::{AmError, Delivery, HandlerTable, Message, Payload};
use argonet_base::{HandlerIndex, JobRank};
use argonet_conduit::{Completion, Conduit, OpToken, SendError, Sink};
use argonet_segment::SharedBytes;
use argonet_sim::{Cluster, FaultPlan, Quality, SimConfig, Simulated as _, Sizes};
use std::time::Duration;

const ASK: HandlerIndex = HandlerIndex(128);
const ANSWER: HandlerIndex = HandlerIndex(129);

/// Messages that a rank has handled, in order: source, number, whether it was an answer.
#[derive(Default)]
struct Log(Vec<(u32, u32, bool)>);

impl Sink for Log {
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        let (from, number) = (delivery.source().0, delivery.arg(0));
        self.0.push((from, number, delivery.handler() == ANSWER));
        if delivery.handler() == ASK {
            delivery.echo(ANSWER, &[number]).unwrap();
        } else {
            let bytes = delivery.payload().to_vec();
            assert_eq!(bytes, [number as u8; 40]);
        }
    }

    fn completed(&mut self, _: OpToken, _: Completion) {}

    fn on_error(&mut self, error: AmError) {
        panic!("{error}");
    }
}

/// All ranks ask all others at once.
fn all_to_all(ranks: u32, each: u32, sizes: Sizes, quality: Quality) {
    let mut config = SimConfig::new(ranks, 5);
    config.sizes = sizes;
    config.segment_bytes = 4096;
    config.faults = FaultPlan {
        healed: quality,
        ..FaultPlan::none()
    };
    let cluster = Cluster::new(config);
    let mut handlers = HandlerTable::default();
    for (index, name) in [(ASK, "ask"), (ANSWER, "answer")] {
        handlers.register_at(index, name, Box::new(|_| {})).unwrap();
    }
    let nodes = cluster.nodes(handlers.registered()).unwrap();
    let mut logs: Vec<Log> = nodes.iter().map(|_| Log::default()).collect();
    let pairs = (ranks * ranks) as usize;
    let mut sent = vec![0; pairs];
    let total = pairs * each as usize * 2;
    while logs.iter().map(|log| log.0.len()).sum::<usize>() < total {
        for (rank, node) in nodes.iter().enumerate() {
            for to in 0..ranks {
                let number = &mut sent[rank * ranks as usize + to as usize];
                let payload = [*number as u8; 40];
                let message = Message {
                    handler: ASK,
                    args: &[*number],
                    payload: Payload::Medium(SharedBytes::from_slice(&payload)),
                };
                if *number < each {
                    match node.conduit.request(JobRank(to), &message) {
                        Ok(()) => *number += 1,
                        Err(error) => assert_eq!(error, SendError::Full),
                    }
                }
            }
            node.conduit.poll(&mut logs[rank]);
        }
        // Acknowledgements are due after some polls that find nothing, and a silent connection is
        // given up after some time.
        if !cluster.step() {
            nodes[0].conduit.compute(Duration::from_micros(50));
        }
        assert!(cluster.now().as_secs() < 100, "it takes forever");
    }
    for (rank, log) in logs.iter().enumerate() {
        for from in 0..ranks {
            for is_answer in [false, true] {
                let of_pair = log.0.iter().filter(|e| e.0 == from && e.2 == is_answer);
                let numbers: Vec<u32> = of_pair.map(|e| e.1).collect();
                assert!(
                    numbers.iter().copied().eq(0..each),
                    "{from} to {rank}: {numbers:?}"
                );
            }
        }
    }
    let quiescent = || nodes.iter().all(|node| node.conduit.is_quiescent());
    while !quiescent() {
        for (node, log) in nodes.iter().zip(&mut logs) {
            node.conduit.poll(log);
        }
        if !cluster.step() {
            nodes[0].conduit.compute(Duration::from_micros(50));
        }
    }
}

#[test]
fn eight_hundred_connections() {
    let bad = Quality {
        hold_ppm: 50_000,
        hold_ns: 100_000,
        break_ppm: 20_000,
        short_ppm: 50_000,
        jitter_ns: 10_000,
        ..Quality::CLEAN
    };
    all_to_all(40, 2, Sizes::default(), bad);
}

#[test]
fn all_to_all_with_every_buffer_at_its_smallest() {
    all_to_all(6, 20, Sizes::smallest(), Quality::CLEAN);
    let bad = Quality {
        break_ppm: 10_000,
        ..Quality::CLEAN
    };
    all_to_all(4, 20, Sizes::smallest(), bad);
}
