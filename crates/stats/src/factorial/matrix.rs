//! Symmetric matrices, as large as a study has cells.

/// A symmetric matrix; its lower triangle.
#[derive(Debug, Clone)]
pub(super) struct Symmetric {
    size: usize,
    entries: Vec<f64>,
}

impl Symmetric {
    pub(super) fn zero(size: usize) -> Self {
        Self { size, entries: vec![0.0; size * (size + 1) / 2] }
    }

    fn at(row: usize, column: usize) -> usize {
        let (row, column) = if row >= column { (row, column) } else { (column, row) };
        row * (row + 1) / 2 + column
    }

    pub(super) fn get(&self, row: usize, column: usize) -> f64 {
        self.entries[Self::at(row, column)]
    }

    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.entries[Self::at(row, column)] += value;
    }

    /// xᵀAy, where `x` and `y` may be shorter than the matrix: the rest of them is 0.
    pub(super) fn form(&self, x: &[f64], y: &[f64]) -> f64 {
        let row = |(i, x): (usize, &f64)| {
            x * y.iter().enumerate().filter(|(_, y)| **y != 0.0).map(|(j, y)| self.get(i, j) * y).sum::<f64>()
        };
        x.iter().enumerate().filter(|(_, x)| **x != 0.0).map(row).sum()
    }

    /// The inverse, by Cholesky's decomposition; none when the matrix is not positive definite, by ten digits.
    pub(super) fn inverse(&self) -> Option<Self> {
        let n = self.size;
        let mut lower = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..=i {
                let known: f64 = lower[i][..j].iter().zip(&lower[j][..j]).map(|(x, y)| x * y).sum();
                let rest = self.get(i, j) - known;
                if i == j {
                    if rest.is_nan() || rest <= 1e-10 * self.get(i, i) {
                        return None;
                    }
                    lower[i][i] = rest.sqrt();
                } else {
                    lower[i][j] = rest / lower[j][j];
                }
            }
        }
        // A = LLᵀ: the columns of L⁻¹, and A⁻¹ = L⁻ᵀL⁻¹ of them.
        let columns: Vec<Vec<f64>> = (0..n)
            .map(|k| {
                let mut column = vec![0.0; n];
                column[k] = 1.0 / lower[k][k];
                for i in k + 1..n {
                    let known: f64 = lower[i][k..i].iter().zip(&column[k..i]).map(|(x, y)| x * y).sum();
                    column[i] = -known / lower[i][i];
                }
                column
            })
            .collect();
        let mut inverse = Self::zero(n);
        for i in 0..n {
            for j in 0..=i {
                let product = columns[i][i..].iter().zip(&columns[j][i..]).map(|(x, y)| x * y).sum();
                inverse.add(i, j, product);
            }
        }
        Some(inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[f64]]) -> Symmetric {
        let mut matrix = Symmetric::zero(rows.len());
        for (i, row) in rows.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                matrix.add(i, j, *value);
            }
        }
        matrix
    }

    #[test]
    fn the_inverse_is_the_one_worked_by_hand() {
        // [4 2; 2 3] has the determinant 8: [3 −2; −2 4]/8.
        let inverse = matrix(&[&[4.0], &[2.0, 3.0]]).inverse().unwrap();
        for (i, j, value) in [(0, 0, 0.375), (0, 1, -0.25), (1, 0, -0.25), (1, 1, 0.5)] {
            assert!((inverse.get(i, j) - value).abs() < 1e-12);
        }
        let whole = matrix(&[&[25.0], &[15.0, 18.0], &[-5.0, 0.0, 11.0]]);
        let inverse = whole.inverse().unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| whole.get(i, k) * inverse.get(k, j)).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        assert!((whole.form(&[1.0, 2.0], &[1.0, 0.0, 1.0]) - 50.0).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_inverse_has_none() {
        assert!(matrix(&[&[1.0], &[1.0, 1.0]]).inverse().is_none());
        assert!(matrix(&[&[0.0]]).inverse().is_none());
        assert!(matrix(&[&[f64::NAN]]).inverse().is_none());
    }
}
