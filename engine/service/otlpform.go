// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/internal/otlpexport"
)

// This file has the three forms of OTLP. A call of gRPC that has one message each way is a request
// of HTTP/2 whose body has a length in front, and whose status comes behind: it is read here so
// that its bytes go to a file as they come, under the same bounds as those by HTTP.

// otlpForm is a form of requests and of their answers.
type otlpForm struct {
	most   int64 // bytes of a message, unpacked
	isJSON bool
	// open returns the message of a request.
	open func(r *http.Request) (io.Reader, error)
	// answer tells that a request was taken, refuse why it was not.
	answer func(w http.ResponseWriter, taken otlpexport.Answer)
	refuse func(w http.ResponseWriter, p *problem)
}

const (
	protobufType = "application/x-protobuf"
)

// otlpForms has the forms by their content types.
var otlpForms = map[string]*otlpForm{
	protobufType:         binaryForm,
	contentTypes["json"]: {maxJSON, true, openHTTP, answerJSON, refuseJSON},
	callType:             grpcForm,
	callType + "+proto":  grpcForm,
}

var (
	binaryForm = &otlpForm{maxProfiles, false, openHTTP, answerBinary, refuseBinary}
	grpcForm   = &otlpForm{maxProfiles, false, openGRPC, answerGRPC, func(w http.ResponseWriter, p *problem) { p.writeCall(w) }}
)

// formOf returns the form of a request. A request for anything else but taking profiles is an error,
// which is to be told in the form.
func formOf(r *http.Request) (*otlpForm, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := otlpForms[kind]
	switch {
	case form == nil && r.Method == http.MethodPost && r.URL.Path == profilesPath:
		p := badRequest.new(fmt.Sprintf("content type %q, expected %s, %s or, by gRPC, %s", kind, protobufType, contentTypes["json"], callType))
		p.Status = http.StatusUnsupportedMediaType
		return binaryForm, p
	case form == nil:
		form = otlpForms[contentTypes["json"]]
	case form == grpcForm && r.ProtoMajor == 2 && r.URL.Path == profilesCall, form != grpcForm && r.URL.Path == profilesPath:
		if r.Method == http.MethodPost {
			return form, nil
		}
	}
	p := notFound.new(fmt.Sprintf("this address takes profiles of OpenTelemetry and nothing else, at POST %s and by gRPC: %s %s is to go elsewhere", profilesPath, r.Method, r.URL.Path))
	p.code = codes.Unimplemented
	return form, p
}

// withDeadline returns the context of a request with the deadline that a caller of gRPC told, less a
// part for the way of the answer, which says more than no answer.
func withDeadline(r *http.Request) (context.Context, context.CancelFunc) {
	if d, ok := parseTimeout(r.Header.Get("Grpc-Timeout")); ok {
		return context.WithTimeout(r.Context(), d-d/10)
	}
	return context.WithCancel(r.Context())
}

// timeoutUnits are the units in gRPC's header for deadlines.
var timeoutUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

func parseTimeout(text string) (d time.Duration, ok bool) {
	const maxDigits = 8 // as gRPC has it
	if len(text) < 2 || len(text) > maxDigits+1 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	unit := timeoutUnits[text[len(text)-1]]
	if err != nil || unit == 0 || n > uint64(24*time.Hour/unit) {
		return 0, false // a day is as good as no deadline
	}
	return time.Duration(n) * unit, true //nolint:gosec // at most a day
}

// openedReader opens its source when it is read for the first time.
type openedReader struct {
	open func() (io.Reader, error)
	r    io.Reader
}

// Read implements io.Reader.
func (o *openedReader) Read(p []byte) (n int, err error) {
	if o.r == nil {
		if o.r, err = o.open(); err != nil {
			o.r = failedReader{err}
			return 0, err
		}
	}
	return o.r.Read(p)
}

// failedReader fails always.
type failedReader struct{ err error }

// Read implements io.Reader.
func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// unpacked returns a body without its encoding.
func unpacked(encoding string, body io.Reader) (io.Reader, error) {
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		return gzip.NewReader(body)
	}
	return nil, fmt.Errorf("encoding %.20q, expected gzip or none", encoding)
}

func openHTTP(r *http.Request) (io.Reader, error) {
	return unpacked(r.Header.Get("Content-Encoding"), r.Body)
}

func openGRPC(r *http.Request) (io.Reader, error) {
	var head [5]byte // whether it is packed, and its length
	if _, err := io.ReadFull(r.Body, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	message := &wholeReader{r.Body, int64(binary.BigEndian.Uint32(head[1:]))}
	if head[0] == 0 {
		return message, nil
	}
	return unpacked(r.Header.Get("Grpc-Encoding"), message)
}

// wholeReader reads the bytes that are left, which all others of its source are.
type wholeReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (w *wholeReader) Read(p []byte) (int, error) {
	if w.left == 0 {
		var more [1]byte
		_, err := io.ReadFull(w.r, more[:])
		if err == nil {
			err = errors.New("there is more than one message")
		}
		return 0, err
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if w.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// encodeTaken encodes an ExportProfilesServiceResponse.
func encodeTaken(taken otlpexport.Answer) []byte {
	var partial []byte
	if taken.Rejected != 0 {
		partial = protowire.AppendVarint(protowire.AppendTag(partial, 1, protowire.VarintType), uint64(taken.Rejected)) //nolint:gosec // as protocol buffers encode it
	}
	if taken.Message != "" {
		partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), taken.Message)
	}
	if partial == nil {
		return nil
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// writeAnswer writes an answer of HTTP. The caller may be gone.
func writeAnswer(w http.ResponseWriter, kind string, status int, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func answerBinary(w http.ResponseWriter, taken otlpexport.Answer) {
	writeAnswer(w, protobufType, http.StatusOK, encodeTaken(taken))
}

func answerJSON(w http.ResponseWriter, taken otlpexport.Answer) {
	type partial struct {
		Rejected int64  `json:"rejectedProfiles,omitempty,string"`
		Message  string `json:"errorMessage,omitempty"`
	}
	var answer struct {
		Partial *partial `json:"partialSuccess,omitempty"`
	}
	if taken != (otlpexport.Answer{}) {
		answer.Partial = &partial{taken.Rejected, taken.Message}
	}
	b, _ := json.Marshal(answer) // numbers and text
	writeAnswer(w, contentTypes["json"], http.StatusOK, b)
}

// setRetryAfter tells when to come again.
func setRetryAfter(w http.ResponseWriter, p *problem) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retry/time.Second)))
	}
}

func refuseBinary(w http.ResponseWriter, p *problem) {
	setRetryAfter(w, p)
	b, _ := proto.Marshal(status.Convert(p.status()).Proto()) // made here
	writeAnswer(w, protobufType, p.Status, b)
}

func refuseJSON(w http.ResponseWriter, p *problem) {
	setRetryAfter(w, p)
	b, _ := protojson.Marshal(status.Convert(p.status()).Proto()) // likewise
	writeAnswer(w, contentTypes["json"], p.Status, b)
}

func answerGRPC(w http.ResponseWriter, taken otlpexport.Answer) {
	message := encodeTaken(taken)
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) //nolint:gosec // its text is bounded
	writeAnswer(w, callType, http.StatusOK, append(body, message...))
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}
