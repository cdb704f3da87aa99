// SPDX-License-Identifier: Apache-2.0

package locexpr

// CheckCFI finds the first operation of an expression that call frame information must not
// use (A.6.4.2). The error is an *Error, which wraps ErrNotInCFI. Bytes that cannot be
// decoded are not an error here.
func CheckCFI(expr []byte, d *Dialect, addressSize int, order ByteOrder) error {
	for instruction, err := range Decode(expr, d, addressSize, order) {
		if err != nil {
			return nil // its text says so
		}
		if instruction.Op.isBarredFromCFI {
			return &Error{Kind: IllFormed, Offset: instruction.Offset, Op: instruction.Op.Name, Err: ErrNotInCFI}
		}
	}
	return nil
}
