// SPDX-License-Identifier: Apache-2.0

package sqlite

import "strings"

// parseColumns returns the names of the columns of a table by its definition, and the index of
// the column that is another name for the number of the row; -1 where there is none.
func parseColumns(sql string) (columns []string, rowID int) {
	rowID = -1
	words := splitSQL(sql)
	for len(words) > 0 && words[0].text != "(" {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, rowID
	}
	depth, first := 0, 1
	for i, w := range words {
		switch {
		case w.isQuoted:
			continue
		case w.text == "(":
			depth++
		case w.text == ")":
			depth--
		}
		if depth == 1 && w.text == "," || depth == 0 {
			columns, rowID = addColumn(columns, rowID, words[first:i])
			first = i + 1
		}
		if depth == 0 {
			break
		}
	}
	return columns, rowID
}

// constraints are the words that begin a part of a definition that is no column.
var constraints = []string{"PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"}

// addColumn adds a column by its part of a definition, or a constraint of the table.
func addColumn(columns []string, rowID int, words []word) ([]string, int) {
	if len(words) == 0 {
		return columns, rowID
	}
	if !words[0].isQuoted {
		for _, c := range constraints {
			if strings.EqualFold(words[0].text, c) {
				// A key of one column is handled where the column is: in exports it stands there.
				return columns, rowID
			}
		}
	}
	if len(words) > 1 && strings.EqualFold(words[1].text, "INTEGER") {
		for i := 2; i+1 < len(words); i++ {
			if strings.EqualFold(words[i].text, "PRIMARY") && strings.EqualFold(words[i+1].text, "KEY") && !(i+2 < len(words) && strings.EqualFold(words[i+2].text, "DESC")) {
				rowID = len(columns)
			}
		}
	}
	return append(columns, words[0].text), rowID
}

// word is a word or a sign of a definition.
type word struct {
	text     string
	isQuoted bool
}

// splitSQL splits a definition into words, without comments.
func splitSQL(sql string) (words []word) {
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			i = after(sql, i, "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i = after(sql, i+2, "*/")
		case c == '"' || c == '`' || c == '\'' || c == '[':
			closing := string(c)
			if c == '[' {
				closing = "]"
			}
			end := after(sql, i+1, closing)
			words = append(words, word{strings.TrimSuffix(sql[i+1:end], closing), true})
			i = end
		case isWord(c):
			start := i
			for i < len(sql) && isWord(sql[i]) {
				i++
			}
			words = append(words, word{sql[start:i], false})
		default:
			words = append(words, word{sql[i : i+1], false})
			i++
		}
	}
	return words
}

// after returns the offset behind the next occurrence of a text; the end where there is none.
func after(sql string, i int, text string) int {
	if n := strings.Index(sql[i:], text); n >= 0 {
		return i + n + len(text)
	}
	return len(sql)
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
