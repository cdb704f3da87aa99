// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// question is a line of the protocol.
type question struct {
	kind    AnswerKind
	module  string // as the answer names it
	path    string
	buildID []byte
	address uint64
	symbol  string // in place of an address
	offset  uint64 // in it
	text    string // the line behind the name of the file
}

// errNoQuestion is the error of an empty line, which is answered without a message.
var errNoQuestion = errors.New("")

const blanks = " \n\r"

// parse reads a line. With an error it returns the part of the question that was read.
func (s *Session) parse(line string) (q question, err error) {
	if line == "" {
		return q, errNoQuestion
	}
	for kind, prefix := range questionPrefixes {
		if rest, ok := strings.CutPrefix(line, prefix); ok && prefix != "" {
			line, q.kind = rest, AnswerKind(kind)
			break
		}
	}
	if line, err = s.parseFile(line, &q); err != nil {
		return q, err
	}
	line = strings.TrimLeft(line, blanks)
	if line == "" {
		return q, errors.New("no module offset has been specified")
	}
	q.text = strings.TrimRight(line, blanks)
	if end := strings.IndexAny(line, blanks); end >= 0 {
		line = line[:end]
	}
	switch {
	case s.Hex:
		// Any text that is a hexadecimal number is an address, as in addr2line.
		digits := strings.TrimPrefix(strings.TrimPrefix(line, "0x"), "0X")
		if q.address, err = strconv.ParseUint(digits, 16, 64); err == nil {
			return q, nil
		}
		if line[0] >= '0' && line[0] <= '9' {
			return q, errors.New("expected a number as module offset")
		}
	case line[0] >= '0' && line[0] <= '9':
		if q.address, err = ParseNumber(line); err != nil {
			return q, errors.New("expected a number as module offset")
		}
		return q, nil
	}
	q.symbol = line
	if name, offset, ok := strings.Cut(line, "+"); ok && name != "" {
		if n, err := ParseNumber(offset); err == nil {
			q.symbol, q.offset = name, n
		}
	}
	return q, nil
}

// parseFile reads the name of the file of a question, and returns the rest of the line.
func (s *Session) parseFile(line string, q *question) (string, error) {
	prefix, line, err := cutPrefix(line)
	if err != nil {
		return "", err
	}
	if s.Object != "" || s.BuildID != nil {
		if prefix != "" {
			return "", errors.New("input file has already been specified")
		}
		q.path, q.module, q.buildID = s.Object, s.Object, s.BuildID
		if s.BuildID != nil {
			q.module = strings.ToUpper(hex.EncodeToString(s.BuildID))
		}
		return line, nil
	}
	name, line := cutName(line)
	switch {
	case name == "" && prefix == filePrefix:
		return "", errors.New("must be followed by an input file")
	case name == "" && prefix == buildIDPrefix:
		return "", errors.New("must be followed by a hash")
	case name == "":
		return "", errors.New("no input filename has been specified")
	}
	if prefix == buildIDPrefix {
		id, err := hex.DecodeString(name)
		if err != nil {
			return "", errors.New("wrong format of build-id")
		}
		q.buildID, q.module = id, strings.ToUpper(name)
		return line, nil
	}
	q.path, q.module = name, name
	return line, nil
}

// The prefixes of the name of a file.
const (
	filePrefix    = "FILE:"
	buildIDPrefix = "BUILDID:"
)

// cutPrefix reads the prefix of the name of a file, "" where there is none, and returns the
// rest of the line.
func cutPrefix(line string) (prefix, rest string, err error) {
	for {
		line = strings.TrimLeft(line, blanks)
		found := ""
		for _, p := range []string{filePrefix, buildIDPrefix} {
			if strings.HasPrefix(line, p) {
				found = p
			}
		}
		switch {
		case found == "":
			return prefix, line, nil
		case prefix != "":
			return "", "", errors.New("duplicate input file specification prefix")
		}
		prefix, line = found, line[len(found):]
	}
}

// cutName reads the name of a file, in quotes or up to a blank, and returns the rest of the
// line. A quotation that does not end has no name.
func cutName(line string) (name, rest string) {
	if line != "" && (line[0] == '"' || line[0] == '\'') {
		if end := strings.IndexByte(line[1:], line[0]); end >= 0 {
			return line[1 : 1+end], line[2+end:]
		}
		return "", line
	}
	end := strings.IndexAny(line, blanks)
	if end < 0 {
		end = len(line)
	}
	return line[:end], line[end:]
}

// ParseNumber reads a number as llvm-symbolizer does: in the syntax of C, 0x and 0 for bases
// 16 and 8, and 0b and 0o.
func ParseNumber(text string) (uint64, error) {
	base := 10
	if len(text) > 1 && text[0] == '0' {
		switch text[1] {
		case 'x', 'X':
			base, text = 16, text[2:]
		case 'b', 'B':
			base, text = 2, text[2:]
		case 'o':
			base, text = 8, text[2:]
		default:
			base, text = 8, text[1:]
		}
	}
	return strconv.ParseUint(text, base, 64)
}
