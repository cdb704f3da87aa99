// Traits, enums with data, closures and panics of Rust.
#![crate_type = "lib"]
use std::fmt::Debug;

#[derive(Debug, Clone)]
pub enum Shape { Circle { radius: f64 }, Rectangle(f64, f64), Named(String), Empty }

pub trait Area { fn area(&self) -> f64; }
impl Area for Shape {
    fn area(&self) -> f64 {
        match self {
            Shape::Circle { radius } => 3.14 * radius * radius,
            Shape::Rectangle(a, b) => a * b,
            Shape::Named(name) => name.len() as f64,
            Shape::Empty => 0.0,
        }
    }
}

#[inline]
fn scale(x: f64, by: i8) -> f64 { let factor = f64::from(by) / 2.0; x * factor }

pub fn total(shapes: &[Shape], by: i8) -> f64 {
    let mut sum = 0.0;
    for (i, s) in shapes.iter().enumerate() {
        let a = scale(s.area(), by);
        sum += a + i as f64;
    }
    sum
}

pub fn show(items: &[&dyn Area], limit: usize) -> Vec<String> {
    items.iter().take(limit).filter(|a| a.area() > 1.0).map(|a| format!("{:.2}", a.area())).collect()
}

pub fn checked(v: Vec<u32>, i: usize) -> Option<u32> {
    let x = v.get(i)?;
    let y = v[i / 2].checked_add(*x)?;
    Some(u128::from(y).pow(2) as u32)
}
