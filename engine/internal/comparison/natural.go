// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// compareNatural orders texts, numbers in them by their values: "rank9" is before "rank10".
func compareNatural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if !isDigit(a[i]) || !isDigit(b[j]) {
			if a[i] != b[j] {
				return cmp.Compare(a[i], b[j])
			}
			i, j = i+1, j+1
			continue
		}
		x, y := digits(a[i:]), digits(b[j:])
		i, j = i+len(x), j+len(y)
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), strings.Compare(a, b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits are the digits at the beginning of a text.
func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

// number returns the number that a text is, in the form in which numbers are written.
func number(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 || len(digits(s)) != len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// maxShort is how many texts that are not numbers Short lists.
const maxShort = 8

// Short writes values in short, each once: numbers as ranges, "0-5,7", then others as a list, of which the end is
// cut off where it is long, "a, b and 7 more". It sorts the values.
func Short(values []string) string {
	slices.SortFunc(values, compareNatural)
	values = slices.Compact(values)
	var numbers []uint64
	var texts []string
	for _, v := range values {
		if n, ok := number(v); ok {
			numbers = append(numbers, n)
		} else {
			texts = append(texts, v)
		}
	}
	out := appendRanges(nil, numbers)
	more := len(texts) - maxShort
	if more > 1 {
		texts = texts[:maxShort]
	}
	for _, t := range texts {
		if len(out) > 0 {
			out = append(out, ", "...)
		}
		out = append(out, t...)
	}
	if more > 1 {
		out = fmt.Appendf(out, " and %d more", more)
	}
	return string(out)
}

// appendRanges appends numbers, which are sorted and differ, as ranges.
func appendRanges(out []byte, numbers []uint64) []byte {
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendUint(out, numbers[i], 10)
		if end > i {
			out = strconv.AppendUint(append(out, '-'), numbers[end], 10)
		}
		i = end + 1
	}
	return out
}
