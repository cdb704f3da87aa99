#include <Python.h>

struct score {
	const char *name;
	long points;
};

static struct score *find(struct score *list, int count, const char *name) {
	for (int i = 0; i < count; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static PyObject *add(PyObject *self, PyObject *args) {
	static struct score list[] = {{"alice", 1}, {"bob", 2}};
	const char *name;
	long points;
	if (!PyArg_ParseTuple(args, "sl", &name, &points))
		return NULL;
	struct score *found = find(list, 2, name);
	found->points += points;
	return PyLong_FromLong(found->points);
}

static PyMethodDef methods[] = {{"add", add, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "scores", NULL, -1, methods};

PyMODINIT_FUNC PyInit_scores(void) { return PyModule_Create(&module); }
