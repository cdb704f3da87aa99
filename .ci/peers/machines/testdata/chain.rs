// SPDX-License-Identifier: Apache-2.0
//
// Ends as its argument says. A panic prints the stack.
use std::{env, ptr, thread, time::Duration};

#[inline(never)]
fn t_reads(from: *const i32) -> i32 {
    unsafe { ptr::read_volatile(from) + 1 }
}

#[inline(never)]
fn t_panics(list: &[i32], n: usize) -> i32 {
    list[n] + 1
}

#[inline(never)]
fn t_step(left: usize, way: &str) -> i32 {
    if left > 0 {
        return t_step(left - 1, way) + 1;
    }
    match way {
        "data" => t_reads(way.len().wrapping_sub(4) as *const i32) + 2,
        "dyn" => {
            let f: Box<dyn Fn(usize) -> i32> = Box::new(|n| t_panics(&[1, 2], n + way.len()) + 1);
            f(2) + 3
        }
        "sort" => {
            let mut list: Vec<usize> = (0..30).rev().collect();
            list.sort_by(|a, b| {
                t_panics(&[1], a + b);
                a.cmp(b)
            });
            list[0] as i32
        }
        _ => t_panics(&[3, 1, 2], 3 + left) + 2,
    }
}

fn main() {
    let way = env::args().nth(1).unwrap_or_default();
    if way == "threads" {
        let waiting: Vec<_> = (0..2).map(|_| thread::spawn(thread::park)).collect();
        thread::sleep(Duration::from_millis(50));
        thread::spawn(|| t_step(3, "")).join().unwrap();
        waiting.into_iter().for_each(|t| t.join().unwrap());
    }
    println!("{}", t_step(3, &way));
}
