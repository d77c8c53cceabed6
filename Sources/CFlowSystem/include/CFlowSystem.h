int flowsystem_probe(void);
