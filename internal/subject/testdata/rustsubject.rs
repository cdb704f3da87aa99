// A Rust program to take cores of: closures, iterators, trait objects, threads
// and a panic that aborts.
//   rustsubject wait     prints a line and waits
//   rustsubject panic    panics at depth; built with panic=abort
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;

trait Visit {
    fn visit(&self, depth: u32, f: &dyn Fn(u32) -> u32) -> u32;
}

struct Leaf(u32);
struct Branch(Vec<Box<dyn Visit>>);

impl Visit for Leaf {
    #[inline(never)]
    fn visit(&self, depth: u32, f: &dyn Fn(u32) -> u32) -> u32 {
        f(self.0 + depth)
    }
}

impl Visit for Branch {
    #[inline(never)]
    fn visit(&self, depth: u32, f: &dyn Fn(u32) -> u32) -> u32 {
        self.0.iter().map(|v| v.visit(depth + 1, f)).fold(0, |a, b| a ^ b)
    }
}

fn tree(depth: u32) -> Box<dyn Visit> {
    if depth == 0 {
        Box::new(Leaf(depth))
    } else {
        Box::new(Branch(vec![tree(depth - 1), tree(0)]))
    }
}

#[inline(never)]
fn wait(gate: &(Mutex<bool>, Condvar), ready: &Barrier) -> u32 {
    ready.wait();
    let mut open = gate.0.lock().unwrap();
    while !*open {
        open = gate.1.wait(open).unwrap();
    }
    1
}

#[inline(never)]
fn fail(values: &BTreeMap<u32, u32>, key: u32) -> u32 {
    *values.get(&key).expect("a key that is there")
}

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let ready = Arc::new(Barrier::new(4));
    for i in 0..3u32 {
        let (gate, ready) = (gate.clone(), ready.clone());
        thread::Builder::new()
            .name(format!("visitor-{i}"))
            .spawn(move || tree(4 + i).visit(0, &|d| d + wait(&gate, &ready)))
            .unwrap();
    }
    ready.wait();
    thread::sleep(std::time::Duration::from_millis(50));
    if mode == "panic" {
        let values: BTreeMap<u32, u32> = (0..10).map(|i| (i, i * i)).collect();
        let total = tree(6).visit(0, &|d| [d, 99].iter().map(|k| fail(&values, *k)).sum());
        println!("{total}");
    }
    println!("ready {}", std::process::id());
    loop {
        thread::park();
    }
}
