// SPDX-License-Identifier: Apache-2.0

// Package otlpjson makes binary messages of requests for profiles in OpenTelemetry's JSON
// (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"): names are in lowerCamelCase, identifiers in
// hexadecimal, other bytes in base64, and names that are not known are passed over.
package otlpjson

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth bounds how deep messages are nested: a value may be a list of values.
const maxDepth = 64

// Request makes a binary ExportProfilesServiceRequest of JSON. It has at most five times the bytes of the JSON.
func Request(text []byte) ([]byte, error) {
	c := converter{json.NewDecoder(bytes.NewReader(text))}
	c.UseNumber()
	out, err := c.message("request", 0)
	if err == nil {
		if _, more := c.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("expected nothing behind the request")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", c.InputOffset(), err)
	}
	return out, nil
}

// converter reads JSON.
type converter struct{ *json.Decoder }

// next returns the next token; the end of the input is an error.
func (c converter) next() (json.Token, error) {
	t, err := c.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return t, err
}

// message converts an object, or null, which is an empty one.
func (c converter) message(kind string, depth int) (out []byte, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("messages are nested more than %d deep", maxDepth)
	}
	t, err := c.next()
	if err != nil || t == nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, fmt.Errorf("expected an object, found %.20q", fmt.Sprint(t))
	}
	for c.More() {
		name, err := c.next()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string)
		f, isKnown := messages[kind][key]
		if !isKnown {
			var passed json.RawMessage
			if err := c.Decode(&passed); err != nil {
				return nil, err
			}
			continue
		}
		if out, err = c.field(out, f, depth); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	_, err = c.next()
	return out, err
}

// field appends a field, with all elements where it is a list.
func (c converter) field(out []byte, f field, depth int) ([]byte, error) {
	if !f.isList {
		return c.element(out, f, depth)
	}
	t, err := c.next()
	if err != nil || t == nil {
		return out, err
	}
	if t != json.Delim('[') {
		return nil, fmt.Errorf("expected a list, found %.20q", fmt.Sprint(t))
	}
	if f.kind == nil {
		for c.More() {
			if out, err = c.element(out, f, depth); err != nil {
				return nil, err
			}
		}
	} else if out, err = c.packed(out, f); err != nil {
		return nil, err
	}
	_, err = c.next()
	return out, err
}

// element appends one message or one value.
func (c converter) element(out []byte, f field, depth int) ([]byte, error) {
	if f.kind == nil {
		var inner []byte
		var err error
		if f.name == "" {
			inner, err = c.text()
		} else {
			inner, err = c.message(f.name, depth+1)
		}
		if err != nil {
			return nil, err
		}
		return protowire.AppendBytes(protowire.AppendTag(out, f.number, protowire.BytesType), inner), nil
	}
	t, err := c.next()
	if err != nil || t == nil {
		return out, err
	}
	return f.kind.append(protowire.AppendTag(out, f.number, f.kind.wire), t)
}

// packed appends a list of numbers, as one field.
func (c converter) packed(out []byte, f field) ([]byte, error) {
	var list []byte
	for c.More() {
		t, err := c.next()
		if err != nil {
			return nil, err
		}
		if list, err = f.kind.append(list, t); err != nil {
			return nil, err
		}
	}
	return protowire.AppendBytes(protowire.AppendTag(out, f.number, protowire.BytesType), list), nil
}

// text returns a string of a list.
func (c converter) text() ([]byte, error) {
	t, err := c.next()
	s, ok := t.(string)
	if err == nil && !ok {
		err = errors.New("expected a string")
	}
	return []byte(s), err
}

// kind is how values are encoded.
type kind struct {
	wire   protowire.Type
	append func(out []byte, t json.Token) ([]byte, error)
}

// The kinds of values.
var (
	textKind   = bytesOf("a string", func(s string) ([]byte, error) { return []byte(s), nil })
	base64Kind = bytesOf("bytes in base64", func(s string) ([]byte, error) {
		if strings.ContainsAny(s, "-_") {
			return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
		}
		return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	})
	hexKind    = bytesOf("bytes in hexadecimal", hex.DecodeString)
	int32Kind  = signed(32)
	int64Kind  = signed(64)
	uint32Kind = unsigned(32)
	uint64Kind = unsigned(64)
	fixed64    = &kind{protowire.Fixed64Type, func(out []byte, t json.Token) ([]byte, error) {
		n, err := strconv.ParseUint(number(t), 10, 64)
		return protowire.AppendFixed64(out, n), wrong(err, t)
	}}
	doubleKind = &kind{protowire.Fixed64Type, func(out []byte, t json.Token) ([]byte, error) {
		n, err := strconv.ParseFloat(number(t), 64) // it knows NaN and Infinity
		return protowire.AppendFixed64(out, math.Float64bits(n)), wrong(err, t)
	}}
	boolKind = &kind{protowire.VarintType, func(out []byte, t json.Token) ([]byte, error) {
		is, ok := t.(bool)
		if !ok {
			return nil, errors.New("expected true or false")
		}
		return protowire.AppendVarint(out, protowire.EncodeBool(is)), nil
	}}
)

// number returns the text of a number, which may be a string; "" for others.
func number(t json.Token) string {
	switch t := t.(type) {
	case json.Number:
		return t.String()
	case string:
		return t
	}
	return ""
}

// wrong returns the error of a value that is no number of its kind.
func wrong(err error, t json.Token) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%.30q is no number, or not within its bounds", fmt.Sprint(t))
}

func signed(bits int) *kind {
	return &kind{protowire.VarintType, func(out []byte, t json.Token) ([]byte, error) {
		n, err := strconv.ParseInt(number(t), 10, bits)
		return protowire.AppendVarint(out, uint64(n)), wrong(err, t) //nolint:gosec // as protocol buffers encode it
	}}
}

func unsigned(bits int) *kind {
	return &kind{protowire.VarintType, func(out []byte, t json.Token) ([]byte, error) {
		n, err := strconv.ParseUint(number(t), 10, bits)
		return protowire.AppendVarint(out, n), wrong(err, t)
	}}
}

func bytesOf(what string, decode func(string) ([]byte, error)) *kind {
	return &kind{protowire.BytesType, func(out []byte, t json.Token) ([]byte, error) {
		s, ok := t.(string)
		if !ok {
			return nil, errors.New("expected " + what)
		}
		b, err := decode(s)
		if err != nil {
			return nil, fmt.Errorf("expected %s: %w", what, err)
		}
		return protowire.AppendBytes(out, b), nil
	}}
}
