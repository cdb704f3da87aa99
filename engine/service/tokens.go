// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Tokens has the names of callers by the SHA-256 of their tokens. A caller may have several, so that a
// new one is valid before the old one is not.
type Tokens map[[sha256.Size]byte]string

// Bounds of tokens and of files of them.
const (
	minToken  = 16     // characters of a token
	maxTokens = 10_000 // of a file: each name has figures
	maxCaller = 100    // bytes of a name
)

// hashPrefix begins the SHA-256 of a token, in hexadecimal, in place of the token: such a file is no
// secret.
const hashPrefix = "sha256:"

// ReadTokens reads lines of a name and a token, or of a name and the token's hash, "sha256:" and 64
// hexadecimal digits, with a blank between them. Empty lines, and lines that begin with #, are skipped. A
// token that is there twice is an error: whose it is would be open.
func ReadTokens(r io.Reader) (Tokens, error) {
	tokens, lines := Tokens{}, bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, sum, err := readToken(line)
		if _, isThere := tokens[sum]; err == nil && isThere {
			err = errors.New("its token is that of an earlier line: expected a token of its own")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if tokens[sum] = name; len(tokens) > maxTokens {
			return nil, fmt.Errorf("line %d: more than %d tokens", n, maxTokens)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, errors.New("no tokens: expected lines of a name and a token")
	}
	return tokens, nil
}

// readToken reads a line. Errors do not show it: they are logged.
func readToken(line string) (name string, sum [sha256.Size]byte, err error) {
	fields := strings.Fields(line)
	if len(fields) != 2 || len(fields[1]) < minToken || len(fields[0]) > maxCaller {
		return "", sum, fmt.Errorf("expected a name of at most %d bytes and a token of %d characters or more", maxCaller, minToken)
	}
	text, isHash := strings.CutPrefix(fields[1], hashPrefix)
	if !isHash {
		return fields[0], sha256.Sum256([]byte(fields[1])), nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(sum) {
		return "", sum, fmt.Errorf("expected %d hexadecimal digits after %s", 2*len(sum), hashPrefix)
	}
	return fields[0], [sha256.Size]byte(b), nil
}

// SetTokens replaces the tokens of callers. Requests that are under way end as they began, and later ones
// of the same connections need a token of the new ones. Figures of names that have no token any more are
// forgotten.
func (s *Server) SetTokens(t Tokens) {
	old := s.tokens.Swap(&t)
	if old == nil || s.metrics == nil {
		return
	}
	stay := map[string]bool{}
	for _, name := range t {
		stay[name] = true
	}
	for _, name := range *old {
		if !stay[name] {
			s.metrics.forget(name)
		}
	}
}
