// SPDX-License-Identifier: Apache-2.0

// A program of C that executes Python, which calls C, which executes Python.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *again(PyObject *self, PyObject *source) {
	(void)self;
	if (PyRun_SimpleString(PyUnicode_AsUTF8(source)))
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"again", again, METH_O, "executes a source"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "outer", NULL, -1, methods, NULL, NULL, NULL, NULL};

static PyObject *outer(void) { return PyModule_Create(&module); }

int main(int argc, char **argv) {
	(void)argc, (void)argv;
	PyImport_AppendInittab("outer", outer);
	Py_Initialize();
	PyRun_SimpleString(
		"import outer, truth\n"
		"def middle():\n"
		"    outer.again('def inner():\\n    truth.end()\\ninner()\\n')\n"
		"middle()\n");
	return Py_FinalizeEx();
}
