// SPDX-License-Identifier: Apache-2.0

// A program with a thread for each way in which Rust starts one. It prints a line when all of them wait.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

static WAITING: AtomicUsize = AtomicUsize::new(0);

fn wait(what: &str) {
    WAITING.fetch_add(1, Ordering::SeqCst);
    while WAITING.load(Ordering::SeqCst) > 0 {
        thread::park();
    }
    println!("{what}");
}

#[inline(never)]
fn refund() {
    wait("refund");
}

trait Work: Send {
    fn go(&self);
}

struct Pool;

impl Pool {
    #[inline(never)]
    fn serve(&self, what: &str) {
        wait(what);
    }
}

impl Work for Pool {
    #[inline(never)]
    fn go(&self) {
        wait("go");
    }
}

fn main() {
    thread::spawn(refund);
    thread::spawn(|| Pool.serve("spawned"));
    let boxed: Box<dyn FnOnce() + Send> = Box::new(refund);
    thread::spawn(boxed);
    let work: Box<dyn Work> = Box::new(Pool);
    thread::spawn(move || work.go());
    thread::scope(|s| {
        s.spawn(|| Pool.serve("scoped"));
        while WAITING.load(Ordering::SeqCst) < 5 {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(10));
        println!("ready");
    });
}
