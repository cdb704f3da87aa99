// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// encodings are the accepted encodings of an answer: object stores keep symbol files
// encoded, and send them so whether it is requested or not.
const encodings = "gzip, zstd"

// isEncoded reports whether an answer is encoded.
func isEncoded(answer *http.Response) bool {
	e := encodingOf(answer)
	return e != "" && e != "identity"
}

func encodingOf(answer *http.Response) string {
	return strings.ToLower(strings.TrimSpace(answer.Header.Get("Content-Encoding")))
}

// maxWindow bounds the memory of a zstd decoder, in bytes; its highest level fits.
const maxWindow = 128 << 20

// decoded returns a reader of the file's bytes; end frees its resources.
func decoded(answer *http.Response) (body io.Reader, end func(), err error) {
	switch e := encodingOf(answer); e {
	case "", "identity":
		return answer.Body, func() {}, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bufio.NewReader(answer.Body))
		if err != nil {
			return nil, nil, &laterError{fmt.Errorf("the answer is no gzip: %w", err), false}
		}
		return z, func() { _ = z.Close() }, nil
	case "zstd":
		z, err := zstd.NewReader(answer.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, fmt.Errorf("the answer is no zstd: %w", err)
		}
		return z, z.Close, nil
	default:
		return nil, nil, fmt.Errorf("the answer has the encoding %.40q, expected %s", e, encodings)
	}
}
