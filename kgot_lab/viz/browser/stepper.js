/** Not written yet. */
function stepperView(root, data, tell) { return { update() {}, destroy() {} }; }
