// SPDX-License-Identifier: Apache-2.0

package cabinet

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

// zipDecoder is of MSZIP: each block is a whole stream of Deflate, whose matches reach into the
// block before.
type zipDecoder struct {
	inflate io.Reader // nil until the first block
	before  []byte    // the block before
	out     [blockSize]byte
}

const zipSignature = "CK"

func (d *zipDecoder) block(packed []byte, n int) ([]byte, error) {
	if !bytes.HasPrefix(packed, []byte(zipSignature)) {
		return nil, fmt.Errorf("it begins with %.2q, expected %q", packed, zipSignature)
	}
	packed = packed[len(zipSignature):]
	if d.inflate == nil {
		d.inflate = flate.NewReader(bytes.NewReader(packed))
	} else if err := d.inflate.(flate.Resetter).Reset(bytes.NewReader(packed), d.before); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(d.inflate, d.out[:n]); err != nil {
		return nil, fmt.Errorf("Deflate: %w", err)
	}
	d.before = append(d.before[:0], d.out[:n]...)
	return d.out[:n], nil
}
