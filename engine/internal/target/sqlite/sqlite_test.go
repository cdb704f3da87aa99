// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// text writes a value as sqlite3 -quote does.
func text(v *Value) string {
	if v.IsNull() {
		return "NULL"
	}
	if n, ok := v.Int(); ok {
		return fmt.Sprint(n)
	}
	if f, ok := v.Float(); ok {
		return fmt.Sprintf("'%.1f'", f)
	}
	return "'" + strings.ReplaceAll(v.Text(), "'", "''") + "'"
}

func rows(t *testing.T, table *Table, columns ...string) (list []string) {
	t.Helper()
	err := table.Each(columns, func(row []Value) error {
		var values []string
		for i := range row {
			values = append(values, text(&row[i]))
		}
		list = append(list, strings.Join(values, ","))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return list
}

// TestAgainstSQLite compares the rows of tables with the ones that sqlite3 prints, for small and
// large pages, rows and numbers, and the encodings of texts.
func TestAgainstSQLite(t *testing.T) {
	oracle.Tools(t, "sqlite3")
	for _, page := range []int{512, 4096, 65536} {
		for _, encoding := range []string{"UTF-8", "UTF-16le", "UTF-16be"} {
			path := filepath.Join(t.TempDir(), "d.sqlite")
			var sql strings.Builder
			fmt.Fprintf(&sql, "PRAGMA page_size=%d; PRAGMA encoding='%s';\nBEGIN;\n", page, encoding)
			sql.WriteString("CREATE TABLE a (\n -- a comment, with (a bracket\n id INTEGER NOT NULL PRIMARY KEY, -- ID\n \"end\" INTEGER, [the start] INT /* x, y */, text TEXT DEFAULT 'a,b(', f REAL CHECK (f > -1e300), last TEXT);\n")
			sql.WriteString("CREATE TABLE b (id INT NOT NULL PRIMARY KEY, v, UNIQUE (id, v));\nCREATE INDEX i ON a(text);\n")
			for i := range 3000 {
				n := int64(1) << (i % 63)
				fmt.Fprintf(&sql, "INSERT INTO a VALUES(%d, %d, %d, %s, %v, NULL);\n", i*7, -n, n-1, []string{"'é" + strings.Repeat("x", i) + "'", "NULL", "'it''s'", "''"}[i%4], float64(i)+0.5)
			}
			sql.WriteString("INSERT INTO b VALUES (5, x'00ff'), (4, 'y'), (NULL+0, NULL);\n")
			statements := strings.ReplaceAll(sql.String(), ", (NULL+0, NULL)", "")
			script := path + ".sql"
			if err := os.WriteFile(script, []byte(statements+"DELETE FROM a WHERE id % 5 = 0; COMMIT;\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			oracle.Run(t, "sqlite3", path, ".read "+script)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(data)
			if err != nil {
				t.Fatal(err)
			}
			a := d.Table("A")
			if a == nil || !slices.Equal(a.Columns, []string{"id", "end", "the start", "text", "f", "last"}) || d.Table("c") != nil || !a.Has("END") {
				t.Fatalf("table %+v", a)
			}
			want := strings.Split(strings.TrimSpace(oracle.Run(t, "sqlite3", "-quote", path, `SELECT id, "end", "the start", text, printf('%.1f', f), NULL FROM a ORDER BY rowid`)), "\n")
			if diff := cmp.Diff(want, rows(t, a, "id", "end", "the start", "text", "f", "none")); diff != "" {
				t.Errorf("pages of %d, %s (-sqlite3 +got):\n%.2000s", page, encoding, diff)
			}
			if got := rows(t, d.Table("b"), "v", "id"); !slices.Equal(got, []string{"'',5", "'y',4"}) {
				t.Errorf("%q", got)
			}
		}
	}
}

func TestDefinitions(t *testing.T) {
	for sql, want := range map[string]string{
		"CREATE TABLE t(a,b)":                                      "[a b] -1",
		"CREATE TABLE t(a INTEGER PRIMARY KEY, b)":                 "[a b] 0",
		"CREATE TABLE t(a INT PRIMARY KEY, b INTEGER PRIMARY KEY)": "[a b] 1",
		"CREATE TABLE t(a INTEGER PRIMARY KEY DESC)":               "[a] -1",
		"CREATE TABLE `t`(`a(,` TEXT, PRIMARY KEY(a))":             "[a(,] -1",
		"CREATE TABLE t AS SELECT":                                 "[] -1",
		"CREATE TABLE t(":                                          "[] -1",
		"":                                                         "[] -1",
	} {
		columns, id := parseColumns(sql)
		if got := fmt.Sprint(columns, id); got != want {
			t.Errorf("%s: %s, expected %s", sql, got, want)
		}
	}
}

// FuzzDatabase reads arbitrary bytes as a database.
func FuzzDatabase(f *testing.F) {
	if data, err := os.ReadFile("testdata/small.sqlite"); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Open(data)
		if err != nil {
			return
		}
		for _, table := range d.tables {
			n := 0
			_ = table.Each([]string{"id", "value"}, func(row []Value) error {
				n++
				_, _ = row[0].Int()
				_ = row[1].Text()
				return nil
			})
			if n > len(data) {
				t.Errorf("%d rows in %d bytes", n, len(data))
			}
		}
	})
}
