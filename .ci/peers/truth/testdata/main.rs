// SPDX-License-Identifier: Apache-2.0

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Guard(&'static str);

impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0.len(), Ordering::Relaxed);
    }
}

enum Tree {
    Leaf(i64),
    Node(Box<Tree>, Box<Tree>),
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Tree::Leaf(n) => write!(f, "{n:>3}"),
            Tree::Node(a, b) => write!(f, "({a} {b})"),
        }
    }
}

#[inline(never)]
fn grow(n: i64) -> Tree {
    if n < 2 {
        Tree::Leaf(n)
    } else {
        Tree::Node(Box::new(grow(n - 1)), Box::new(grow(n - 2)))
    }
}

#[inline(never)]
fn fails(n: usize, list: &[i32]) -> i32 {
    let _guard = Guard("fails");
    if n == 0 {
        list[list.len()]
    } else {
        fails(n - 1, list) + 1
    }
}

trait Shape {
    fn area(&self) -> f64;
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0.powi(2) * 3.14
    }
}

#[inline(never)]
fn collections() -> usize {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut ordered = BTreeMap::new();
    for (i, word) in "the quick brown fox jumps over the lazy dog".split(' ').enumerate() {
        *counts.entry(word.to_string()).or_default() += 1;
        ordered.insert(word.chars().rev().collect::<String>(), i);
    }
    let mut list: Vec<_> = counts.into_iter().collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    println!("{list:?} {ordered:?}");
    list.len()
}

fn main() {
    let tree = grow(6);
    println!("{tree}");
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(1.5))];
    println!("{:.3} {}", shapes.iter().map(|s| s.area()).sum::<f64>(), collections());
    let caught = std::panic::catch_unwind(|| fails(4, &[1, 2, 3]));
    println!("{}", caught.is_err());
    println!("{:?}", "12x".parse::<i32>());
}
